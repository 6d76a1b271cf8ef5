def all_worlds(arch):
    return {}


def excused(rule):
    return False
