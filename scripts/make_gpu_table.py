#!/usr/bin/env python3
"""Writes data/gpu_chips.tsv from a copy of the PCI ID repository's pci.ids (package pci.ids):

  scripts/make_gpu_table.py /usr/share/misc/pci.ids >data/gpu_chips.tsv
"""
import re
import sys

# Compute capability of each chip: the table "CUDA GPU Compute Capability" at
# https://developer.nvidia.com/cuda-gpus names products; pci.ids says which chip a product has.
CHIPS = {
    "GK104": 30, "GK106": 30, "GK107": 30, "GK110": 35, "GK180": 35, "GK208": 35, "GK210": 37,
    "GM107": 50, "GM108": 50, "GM200": 52, "GM204": 52, "GM206": 52,
    "GP100": 60, "GP102": 61, "GP104": 61, "GP106": 61, "GP107": 61, "GP108": 61,
    "GV100": 70,
    "TU102": 75, "TU104": 75, "TU106": 75, "TU116": 75, "TU117": 75,
    "GA100": 80, "GA102": 86, "GA103": 86, "GA104": 86, "GA106": 86, "GA107": 86,
    "AD102": 89, "AD103": 89, "AD104": 89, "AD106": 89, "AD107": 89,
    "GH100": 90,
    "GB100": 100, "GB102": 100, "GB110": 103, "GB112": 103,
    "GB202": 120, "GB203": 120, "GB205": 120, "GB206": 120, "GB207": 120, "GB20B": 121,
}
NO_GPU = re.compile(r"audio|usb|ucsi|bridge|host|pcie|smbus|cpu|nvswitch", re.I)
HEADER = """\
# PCI device ids of NVIDIA's GPUs, in ranges, and the compute capability of their chips.
# Source of ids and chips: the PCI ID repository (https://pci-ids.ucw.cz), of the capabilities: NVIDIA
# (https://developer.nvidia.com/cuda-gpus). Made by scripts/make_gpu_table.py; Fermi and older left out.
# first\tlast\tchip\tsm
"""


def devices(text: str):
    vendor = ""
    for line in text.splitlines():
        if re.match(r"[0-9a-f]{4} ", line):
            vendor = line[:4]
        found = re.match(r"\t([0-9a-f]{4})  (G[KMPVABH]|TU|AD)([0-9]+)(B?)\S*(.*)", line)
        if vendor != "10de" or not found or NO_GPU.search(found[5]):
            continue
        chip = found[2] + found[3]
        chip = chip if chip in CHIPS else chip + found[4]
        if chip in CHIPS:
            yield int(found[1], 16), chip


def main() -> None:
    ranges: list[list] = []
    for device, chip in sorted(devices(open(sys.argv[1], encoding="utf-8").read())):
        if ranges and ranges[-1][2] == chip:
            ranges[-1][1] = device
        else:
            ranges.append([device, device, chip])
    print(HEADER, end="")
    for first, last, chip in ranges:
        print(f"{first:04x}\t{last:04x}\t{chip}\t{CHIPS[chip]}")


main()
