"""What `cohabit verify` runs in a child process: imports in order, then small computations, each checked for its value.

    python -c TEXT CHANNEL MODULE...

A MODULE that ends in " --help" is a script of the environment with that option.

It tells what it does on the descriptor CHANNEL, a line for each step, so that a crash is known by the last one. Many conflicts
show only in a computation: imports that succeed prove little. Any Python from 3.6 on, and nothing but its standard library.
"""
import contextlib
import ctypes
import importlib
import json
import os
import re
import sys

channel = int(sys.argv[1])
modules = sys.argv[2:]

# Others work on these GPUs too: nobody takes most of the memory for a product of two small matrices.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


class Wrong(Exception):
    """A computed value is not the right one."""


def tell(kind, *words):
    line = " ".join([kind] + [str(word) for word in words]).replace("\n", " ")
    os.write(channel, (line[:2000] + "\n").encode("utf-8", "replace"))


def check(what, value, right, within=0.0):
    value = float(value)
    if not abs(value - right) <= within:  # not a number is wrong too
        raise Wrong("%s gives %r, not %r" % (what, value, right))


def check_random(mean, least, most):
    """Of 4096 draws between 0 and 1: the mean is at 0.5, with a deviation of 0.0045."""
    check("the mean of random draws", mean, 0.5, 0.05)
    if not 0 <= float(least) < float(most) <= 1:
        raise Wrong("random draws lie between %r and %r" % (float(least), float(most)))


def gpu_is_there():
    """By the driver's files: no library is loaded for the question. An empty CUDA_VISIBLE_DEVICES hides them all."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1", "NoDevFiles"):
        return False
    nodes = [name for name in os.listdir("/dev") if re.match(r"nvidia[0-9]+$|dxg$|nvhost-gpu$|nvgpu$", name)]
    return bool(nodes)


class Framework:
    """One with tensors and devices. Its computations get the module and the name of a device."""

    computations = ("product", "convolution", "solve", "random")
    can_use_gpus = True

    def devices(self, m):
        return ["cpu"]

    def on(self, m, device):
        return contextlib.suppress()

    def describe(self, m, device):
        """name, compute_capability; total, allocated, cached in bytes; what it does not tell is left out."""
        return {}


class Torch(Framework):
    def devices(self, m):
        return ["cpu"] + ["cuda:%d" % n for n in range(m.cuda.device_count())]

    def product(self, m, device):
        a = m.ones(64, 64, device=device)
        check("a product of matrices", (a @ a)[0, 0], 64)

    def convolution(self, m, device):
        image, kernels = m.ones(1, 3, 16, 16, device=device), m.ones(8, 3, 3, 3, device=device)
        out = m.nn.functional.conv2d(image, kernels)
        check("a convolution", out[0, 0, 0, 0], 27, 0.1)
        check("the last element of its shape", tuple(out.shape)[3], 14)

    def solve(self, m, device):
        a, b = m.eye(8, device=device) * 2, m.ones(8, 1, device=device)
        solve = getattr(getattr(m, "linalg", None), "solve", None)
        check("a linear solve", (solve(a, b) if solve else m.solve(b, a)[0])[0, 0], 0.5, 1e-6)
        check("the sum of singular values", m.svd(a)[1].sum(), 16, 1e-3)

    def random(self, m, device):
        r = m.rand(4096, device=device)
        check_random(r.mean(), r.min(), r.max())

    def describe(self, m, device):
        if device == "cpu":
            return {}
        properties, held = m.cuda.get_device_properties(device), m.cuda.memory_allocated(device)
        return {"name": properties.name, "compute_capability": "%d.%d" % (properties.major, properties.minor),
                "total": properties.total_memory, "allocated": held, "cached": m.cuda.memory_reserved(device) - held}


class Tensorflow(Framework):
    def devices(self, m):
        if not hasattr(m, "function"):
            self.can_use_gpus = False  # 1.x computes in sessions: not tried
            return []
        return ["cpu"] + ["cuda:%d" % n for n in range(len(self._gpus(m)))]

    def _gpus(self, m):
        return m.config.list_physical_devices("GPU")

    def on(self, m, device):
        return m.device("/" + device.replace("cuda", "GPU"))

    def product(self, m, device):
        a = m.ones((64, 64))
        check("a product of matrices", m.matmul(a, a)[0][0], 64)

    def convolution(self, m, device):
        out = m.nn.conv2d(m.ones((1, 16, 16, 3)), m.ones((3, 3, 3, 8)), 1, "VALID")
        check("a convolution", out[0][0][0][0], 27, 0.1)
        check("an element of its shape", tuple(out.shape)[2], 14)

    def solve(self, m, device):
        check("a linear solve", m.linalg.solve(m.eye(8) * 2, m.ones((8, 1)))[0][0], 0.5, 1e-6)

    def random(self, m, device):
        r = m.random.uniform((4096,))
        check_random(m.reduce_mean(r), m.reduce_min(r), m.reduce_max(r))

    def function(self, m, device):
        check("a compiled function", m.function(lambda x: x * 2)(m.constant(3.0)), 6)

    computations = Framework.computations + ("function",)

    def describe(self, m, device):
        if device == "cpu":
            return {}
        number = int(device[5:])
        details = m.config.experimental.get_device_details(self._gpus(m)[number])
        found = {"name": details.get("device_name", "")}
        if details.get("compute_capability"):
            found["compute_capability"] = "%d.%d" % details["compute_capability"]
        if hasattr(m.config.experimental, "get_memory_info"):
            found["allocated"] = m.config.experimental.get_memory_info("GPU:%d" % number)["current"]
        return found


class Paddle(Framework):
    def devices(self, m):
        has_cuda = getattr(m, "is_compiled_with_cuda", bool)()
        return ["cpu"] + ["cuda:%d" % n for n in range(m.device.cuda.device_count() if has_cuda else 0)]

    @contextlib.contextmanager
    def on(self, m, device):
        if not hasattr(m, "set_device"):
            yield
            return
        before = m.get_device()
        m.set_device(device.replace("cuda", "gpu"))
        try:
            yield
        finally:
            m.set_device(before)

    def product(self, m, device):
        a = m.ones([64, 64])
        check("a product of matrices", m.matmul(a, a)[0][0], 64)

    def convolution(self, m, device):
        out = m.nn.functional.conv2d(m.ones([1, 3, 16, 16]), m.ones([8, 3, 3, 3]))
        check("a convolution", out[0][0][0][0], 27, 0.1)
        check("an element of its shape", list(out.shape)[3], 14)

    def solve(self, m, device):
        if hasattr(m.linalg, "solve"):
            check("a linear solve", m.linalg.solve(m.eye(8) * 2, m.ones([8, 1]))[0][0], 0.5, 1e-6)

    def random(self, m, device):
        r = m.rand([4096])
        check_random(r.mean(), r.min(), r.max())

    def describe(self, m, device):
        if device == "cpu":
            return {}
        number = int(device[5:])
        properties, held = m.device.cuda.get_device_properties(number), m.device.cuda.memory_allocated(number)
        return {"name": properties.name, "compute_capability": "%d.%d" % (properties.major, properties.minor),
                "total": properties.total_memory, "allocated": held, "cached": m.device.cuda.memory_reserved(number) - held}


class Jax(Framework):
    def devices(self, m):
        self._found = {"cpu": m.local_devices(backend="cpu")[0]}
        for device in m.local_devices():
            if device.platform != "cpu":
                self._found["%s:%d" % ("cuda" if device.platform == "gpu" else device.platform, device.id)] = device
        return list(self._found)

    def on(self, m, device):
        return m.default_device(self._found[device]) if hasattr(m, "default_device") else contextlib.suppress()

    def product(self, m, device):
        a = m.numpy.ones((64, 64))
        check("a product of matrices", (a @ a)[0, 0], 64)

    def convolution(self, m, device):
        ones = m.numpy.ones
        out = m.lax.conv(ones((1, 3, 16, 16)), ones((8, 3, 3, 3)), (1, 1), "VALID")
        check("a convolution", out[0, 0, 0, 0], 27, 0.1)

    def solve(self, m, device):
        check("a linear solve", m.numpy.linalg.solve(m.numpy.eye(8) * 2, m.numpy.ones((8, 1)))[0, 0], 0.5, 1e-6)

    def random(self, m, device):
        r = m.random.uniform(m.random.PRNGKey(0), (4096,))
        check_random(r.mean(), r.min(), r.max())

    def describe(self, m, device):
        found, stats = self._found[device], self._found[device].memory_stats() or {}
        if device == "cpu":
            return {}
        told = {"name": found.device_kind}
        if getattr(found, "compute_capability", None):
            told["compute_capability"] = str(found.compute_capability)
        if "bytes_limit" in stats:
            told["total"] = stats["bytes_limit"]
        if "bytes_in_use" in stats:
            told["allocated"] = stats["bytes_in_use"]
            if "pool_bytes" in stats:
                told["cached"] = stats["pool_bytes"] - stats["bytes_in_use"]
        return told


class Cupy(Framework):
    computations = ("product", "transform", "solve", "random", "kernel")

    def devices(self, m):
        try:
            return ["cuda:%d" % n for n in range(m.cuda.runtime.getDeviceCount())]
        except m.cuda.runtime.CUDARuntimeError:
            if gpu_is_there():
                raise
            return []

    def on(self, m, device):
        return m.cuda.Device(int(device[5:]))

    def product(self, m, device):
        a = m.ones((64, 64), dtype="float32")
        check("a product of matrices", (a @ a)[0, 0], 64)

    def transform(self, m, device):
        check("a Fourier transform", m.fft.fft(m.ones(64))[0].real, 64, 1e-6)

    def solve(self, m, device):
        check("a linear solve", m.linalg.solve(m.eye(8) * 2, m.ones((8, 1)))[0, 0], 0.5, 1e-6)

    def random(self, m, device):
        r = m.random.rand(4096)
        check_random(r.mean(), r.min(), r.max())

    def kernel(self, m, device):
        out = m.ElementwiseKernel("float32 x", "float32 y", "y = x * 3 + 1", "cohabit_verify")(m.ones(64, dtype="float32"))
        check("a compiled kernel", out[5], 4)

    def describe(self, m, device):
        number = int(device[5:])
        properties = m.cuda.runtime.getDeviceProperties(number)
        name, pool = properties["name"], m.get_default_memory_pool()
        return {"name": name.decode() if isinstance(name, bytes) else name,
                "compute_capability": "%d.%d" % (properties["major"], properties["minor"]),
                "total": properties["totalGlobalMem"], "allocated": pool.used_bytes(), "cached": pool.free_bytes()}


class Onnxruntime(Framework):
    computations = ("product",)
    _providers = {"cuda:0": "CUDAExecutionProvider"}

    def devices(self, m):
        has_cuda = gpu_is_there() and "CUDAExecutionProvider" in m.get_available_providers()
        return ["cpu"] + (["cuda:0"] if has_cuda else [])

    def product(self, m, device):
        import numpy as n
        wanted = self._providers.get(device, "CPUExecutionProvider")
        session = m.InferenceSession(_product_model(), providers=[wanted])
        if session.get_providers()[0] != wanted:  # it goes on without, and says so in its log only
            raise RuntimeError("a session that asks for %s gets %s" % (wanted, ", ".join(session.get_providers())))
        ones = n.ones((64, 64), "float32")
        check("a product of matrices", session.run(None, {"x": ones, "y": ones})[0][0, 0], 64)


def _field(number, value):
    """A field of a protobuf message: a number, a text, or a message in bytes."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    size, rest = bytearray(), len(data)
    while rest > 127:
        size.append(rest & 127 | 128)
        rest >>= 7
    size.append(rest)
    return bytes([number << 3 | 2]) + bytes(size) + data


def _product_model():
    """z = MatMul(x, y) of 64 x 64 float32 as an ONNX model (onnx.proto's field numbers), without the package onnx."""
    sides = _field(1, _field(1, 64)) * 2  # TensorShapeProto.dim
    kind = _field(1, _field(1, 1) + _field(2, sides))  # TypeProto.tensor_type: elem_type FLOAT, shape
    node = _field(1, "x") + _field(1, "y") + _field(2, "z") + _field(4, "MatMul")
    graph = _field(1, node) + _field(2, "g")
    for number, name in ((11, "x"), (11, "y"), (12, "z")):
        graph += _field(number, _field(1, name) + _field(2, kind))
    return _field(1, 7) + _field(7, graph) + _field(8, _field(2, 13))  # ir_version, graph, opset_import


class Ctranslate2(Framework):
    computations = ("storage",)

    def devices(self, m):
        return ["cpu"] + ["cuda:%d" % n for n in range(m.get_cuda_device_count())]

    def storage(self, m, device):
        import numpy as n
        m.get_supported_compute_types(device.partition(":")[0])
        view = m.StorageView.from_array(n.ones((4, 4), "float32"))
        if device != "cpu" and hasattr(view, "to_device"):
            view = view.to_device(m.Device.cuda).to_device(m.Device.cpu)
        check("an element that went to " + device, n.asarray(view)[3, 3], 1)


class Faiss(Framework):
    computations = ("search",)

    def devices(self, m):
        count = m.get_num_gpus() if hasattr(m, "StandardGpuResources") else 0
        return ["cpu"] + ["cuda:%d" % n for n in range(count)]

    def search(self, m, device):
        import numpy as n
        data = n.random.rand(2000, 16).astype("float32")
        index = m.IndexFlatL2(16)
        if device != "cpu":
            index = m.index_cpu_to_gpu(m.StandardGpuResources(), int(device[5:]), index)
        index.add(data)
        found = index.search(data[:50], 1)[1][:, 0]
        check("vectors found again", (found == n.arange(50)).sum(), 50)


class Xgboost(Framework):
    computations = ("training",)

    def devices(self, m):
        has_cuda = gpu_is_there() and hasattr(m, "build_info") and m.build_info().get("USE_CUDA")
        return ["cpu"] + (["cuda:0"] if has_cuda else [])

    def training(self, m, device):
        import numpy as n
        values = n.random.rand(500, 5)
        labels = (values[:, 0] > 0.5).astype("float32")
        settings = {"max_depth": 3, "verbosity": 0, "tree_method": "hist", "eta": 1}
        if device != "cpu":
            is_old = int(m.__version__.split(".")[0]) < 2
            settings.update({"tree_method": "gpu_hist"} if is_old else {"device": device})
        data = m.DMatrix(values, label=labels)
        found = m.train(settings, data, 3).predict(data)
        check("the share of rows put where they belong", ((found > 0.5) == labels).mean(), 1, 0.05)


class Pycuda(Framework):
    """PyCUDA makes contexts itself; this one is the device's primary one, which the other frameworks have too."""

    computations = ("kernel",)

    def devices(self, m):
        driver = importlib.import_module("pycuda.driver")
        if not gpu_is_there():
            return []
        driver.init()
        return ["cuda:%d" % n for n in range(driver.Device.count())]

    @contextlib.contextmanager
    def on(self, m, device):
        context = importlib.import_module("pycuda.driver").Device(int(device[5:])).retain_primary_context()
        context.push()
        try:
            yield
        finally:
            context.pop()

    def kernel(self, m, device):
        import numpy as n
        arrays = importlib.import_module("pycuda.gpuarray")
        check("a sum on the device", (arrays.to_gpu(n.ones(64, "float32")) * 3).get().sum(), 192)

    def describe(self, m, device):
        found = importlib.import_module("pycuda.driver").Device(int(device[5:]))
        return {"name": found.name(), "compute_capability": "%d.%d" % found.compute_capability(), "total": found.total_memory()}


class Mxnet(Framework):
    computations = ("product",)

    def product(self, m, device):
        a = m.nd.ones((64, 64))
        check("a product of matrices", m.nd.dot(a, a)[0][0].asscalar(), 64)


FRAMEWORKS = {"torch": Torch, "tensorflow": Tensorflow, "paddle": Paddle, "jax": Jax, "cupy": Cupy, "onnxruntime": Onnxruntime,
              "ctranslate2": Ctranslate2, "faiss": Faiss, "xgboost": Xgboost, "pycuda": Pycuda, "mxnet": Mxnet}


# --- packages without devices: a round trip each ---


def same(what, back, given):
    if back != given:
        raise Wrong("%s comes back as another" % what)


def numpy(m):
    a = m.ones((64, 64))
    check("a product of matrices", (a @ a)[0, 0], 64)
    check("a linear solve", m.linalg.solve(m.eye(4) * 2, m.ones((4, 1)))[0, 0], 0.5, 1e-12)


def scipy(m):
    import numpy as n
    check("a linear solve", importlib.import_module("scipy.linalg").solve(n.eye(4) * 2, n.ones((4, 1)))[0, 0], 0.5, 1e-12)


def sklearn(m):
    import numpy as n
    cluster = importlib.import_module("sklearn.cluster")
    points = n.concatenate([n.zeros((50, 2)), n.ones((50, 2))])
    found = cluster.KMeans(2, n_init=1, random_state=0).fit(points).labels_
    check("points told apart", abs(int(found[:50].sum()) - int(found[50:].sum())), 50)


def numba(m):
    check("a compiled function", m.njit(lambda a: a + 1)(2), 3)


def lightgbm(m):
    import numpy as n
    values = n.random.rand(500, 5)
    labels = (values[:, 0] > 0.5).astype("float32")
    model = m.train({"verbose": -1, "objective": "binary"}, m.Dataset(values, label=labels), 5)
    check("the share of rows put where they belong", ((model.predict(values) > 0.5) == labels).mean(), 1, 0.1)


def cv2(m):
    import numpy as n
    image = (n.arange(64 * 64 * 3) % 255).reshape(64, 64, 3).astype("uint8")
    good, png = m.imencode(".png", image)
    same("a picture as PNG", bool(good) and (m.imdecode(png, 1) == image).all(), True)
    good, jpeg = m.imencode(".jpg", n.full((64, 64, 3), 100, "uint8"))
    check("the colour of a JPEG", m.imdecode(jpeg, 1).mean(), 100, 3)


def PIL(m):
    import io
    pictures = importlib.import_module("PIL.Image")
    picture = pictures.new("RGB", (64, 64), (10, 200, 30))
    for kind, within in (("PNG", 0), ("JPEG", 6)):
        out = io.BytesIO()
        picture.save(out, kind)
        for value, right in zip(pictures.open(io.BytesIO(out.getvalue())).convert("RGB").getpixel((3, 3)), (10, 200, 30)):
            check("a colour of a " + kind, value, right, within)


def picture(n):
    return (n.arange(64 * 64 * 3) % 255).reshape(64, 64, 3).astype("uint8")


def skimage(m):
    import io
    import numpy as n
    files, out, given = importlib.import_module("skimage.io"), io.BytesIO(), picture(n)
    importlib.import_module("PIL.Image").fromarray(given).save(out, "PNG")
    same("a picture as PNG", bool((files.imread(io.BytesIO(out.getvalue())) == given).all()), True)


def imageio(m):
    import numpy as n
    files, given = importlib.import_module("imageio.v2"), picture(n)
    back = files.imread(files.imwrite("<bytes>", given, format="png"), format="png")
    same("a picture as PNG", bool((back == given).all()), True)


def matplotlib(m):
    import io
    m.use("Agg")
    figures, out = importlib.import_module("matplotlib.figure"), io.BytesIO()
    figure = figures.Figure(figsize=(1, 1), dpi=40, facecolor=(1, 0, 0))
    figure.add_subplot().plot([1, 2])
    figure.savefig(out, format="png")
    colours = importlib.import_module("PIL.Image").open(io.BytesIO(out.getvalue())).convert("RGB").getpixel((0, 0))
    same("the colour of a drawing", colours, (255, 0, 0))


def fitz(m):
    document = m.open()
    page = document.new_page() if hasattr(document, "new_page") else document.newPage()
    (page.insert_text if hasattr(page, "insert_text") else page.insertText)((72, 72), "cohabit")
    again = m.open("pdf", document.tobytes(deflate=True))
    text = again[0].get_text() if hasattr(again[0], "get_text") else again[0].getText()
    same("a text in a PDF file", text.strip(), "cohabit")


def pikepdf(m):
    import io
    document, out = m.new(), io.BytesIO()
    document.add_blank_page()
    document.save(out, compress_streams=True)
    check("the pages of a PDF file", len(m.open(io.BytesIO(out.getvalue())).pages), 1)


def rasterio(m):
    import numpy as n
    files, given = importlib.import_module("rasterio.io"), picture(n)[:, :, 0]
    with files.MemoryFile() as memory:
        with memory.open(driver="GTiff", width=64, height=64, count=1, dtype="uint8", compress="deflate") as out:
            out.write(given, 1)
        with memory.open() as back:
            same("a picture as GeoTIFF", bool((back.read(1) == given).all()), True)


def lxml(m):
    trees = importlib.import_module("lxml.etree")
    same("an XML document", trees.tostring(trees.fromstring("<a><b>x</b></a>")), b"<a><b>x</b></a>")


def torchvision(m):
    torch = importlib.import_module("torch")
    check("boxes that do not overlap", len(m.ops.nms(torch.tensor([[0., 0., 1., 1.], [5., 5., 6., 6.]]), torch.tensor([1., 0.5]), 0.5)), 2)
    files, given = importlib.import_module("torchvision.io"), torch.arange(3 * 8 * 8).reshape(3, 8, 8).to(torch.uint8)
    if hasattr(files, "encode_png") and hasattr(files, "decode_png"):
        same("a picture as PNG", bool((files.decode_png(files.encode_png(given)) == given).all()), True)


def polars(m):
    import io
    out = io.BytesIO()
    m.DataFrame({"a": [1, 2, 3]}).write_parquet(out, compression="zstd")
    check("the sum of a column", m.read_parquet(io.BytesIO(out.getvalue()))["a"].sum(), 6)


def duckdb(m):
    check("a query", m.sql("select sum(range) from range(4)").fetchall()[0][0], 6)


def brotli(m):
    same("a text through brotli", m.decompress(m.compress(b"a" * 100000)), b"a" * 100000)


def zlib(m):
    same("a text through zlib", m.decompress(m.compress(b"a" * 100000)), b"a" * 100000)


def bz2(m):
    same("a text through bzip2", m.decompress(m.compress(b"a" * 100000)), b"a" * 100000)


def lzma(m):
    same("a text through xz", m.decompress(m.compress(b"a" * 100000)), b"a" * 100000)


def zstandard(m):
    same("a text through zstd", m.ZstdDecompressor().decompress(m.ZstdCompressor().compress(b"a" * 100000)), b"a" * 100000)


def lz4(m):
    frames = importlib.import_module("lz4.frame")
    same("a text through lz4", frames.decompress(frames.compress(b"a" * 100000)), b"a" * 100000)


def blosc2(m):
    same("a text through blosc2", m.decompress(m.compress(b"a" * 100000, codec=m.Codec.ZLIB)), b"a" * 100000)


def snappy(m):
    same("a text through snappy", m.decompress(m.compress(b"a" * 100000)), b"a" * 100000)


def sentencepiece(m):
    import io
    out = io.BytesIO()
    lines = ["hello world this is a test of the thing", "another line of words here"] * 50
    m.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, vocab_size=30,
                                 hard_vocab_limit=False, minloglevel=2)
    pieces = m.SentencePieceProcessor(model_proto=out.getvalue())
    same("a word in pieces", pieces.decode(pieces.encode("hello")), "hello")


def onnx(m):
    from onnx import TensorProto, helper
    node = helper.make_node("Relu", ["x"], ["y"])
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    graph = helper.make_graph([node], "g", [value], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
    again = m.ModelProto()
    again.ParseFromString(helper.make_model(graph).SerializeToString())
    same("an ONNX model", again.graph.node[0].op_type, "Relu")


def openvino(m):
    import numpy as n
    core = m.Core() if hasattr(m, "Core") else importlib.import_module("openvino.runtime").Core()
    model, ones = core.compile_model(core.read_model(_product_model()), "CPU"), n.ones((64, 64), "float32")
    check("a product of matrices", list(model([ones, ones]).values())[0][0, 0], 64)


def grpc(m):
    """A call to a server of our own: an echo."""
    from concurrent import futures
    server = m.server(futures.ThreadPoolExecutor(1))
    echo = m.unary_unary_rpc_method_handler(lambda request, context: request)
    server.add_generic_rpc_handlers((m.method_handlers_generic_handler("cohabit.Verify", {"Echo": echo}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with m.insecure_channel("127.0.0.1:%d" % port, options=[("grpc.enable_http_proxy", 0)]) as channel:
            same("a message to itself", channel.unary_unary("/cohabit.Verify/Echo")(b"a" * 1000, timeout=60), b"a" * 1000)
    finally:
        server.stop(0)


def protobuf(m):
    values = importlib.import_module("google.protobuf.struct_pb2")
    given, back = values.Struct(), values.Struct()
    given.update({"a": 1.5, "b": "x"})
    back.ParseFromString(given.SerializeToString())
    same("a protobuf message", (back["a"], back["b"]), (1.5, "x"))


def h5py(m):
    import numpy as n
    file = m.File("x.h5", "w", driver="core", backing_store=False)
    file.create_dataset("a", data=n.arange(1000), compression="gzip")
    check("an element of an HDF5 file", file["a"][5], 5)


def tables(m):
    import numpy as n
    file = m.open_file("t.h5", "w", driver="H5FD_CORE", driver_core_backing_store=0)
    file.create_carray("/", "a", obj=n.arange(1000), filters=m.Filters(5, "zlib"))
    check("an element of an HDF5 file", file.root.a[5], 5)
    file.close()


def netCDF4(m):
    file = m.Dataset("x", "w", memory=4096)
    file.createDimension("x", 3)
    file.createVariable("v", "f8", ("x",))[:] = 5
    check("an element of a NetCDF file", file["v"][1], 5)


def pyarrow(m):
    parquet = importlib.import_module("pyarrow.parquet")
    table = m.Table.from_arrays([m.array(list(range(1000)))], names=["a"])
    for codec in ("snappy", "gzip", "zstd"):
        out = m.BufferOutputStream()
        parquet.write_table(table, out, compression=codec)
        check("rows through " + codec, parquet.read_table(m.BufferReader(out.getvalue())).num_rows, 1000)


def drawn(text):
    from PIL import Image, ImageDraw, ImageFont
    try:
        font, times = ImageFont.load_default(48), 1
    except TypeError:  # Pillow before 10.1 has one size
        font, times = ImageFont.load_default(), 4
    image = Image.new("RGB", (480 // times, 120 // times), "white")
    ImageDraw.Draw(image).text((30 // times, 30 // times), text, font=font, fill="black")
    return image.resize((480, 120))


def ocr(m):
    import numpy as n
    found, _ = m.RapidOCR()(n.asarray(drawn("COHABIT 2026"))[:, :, ::-1])
    text = "".join(line[1] for line in found or []).replace(" ", "").upper()
    if text != "COHABIT2026":
        raise Wrong("the drawn text COHABIT 2026 was read as " + repr(text))


ROUND_TRIPS = {"numpy": numpy, "scipy": scipy, "sklearn": sklearn, "numba": numba, "lightgbm": lightgbm, "cv2": cv2, "PIL": PIL,
               "skimage": skimage, "imageio": imageio, "matplotlib": matplotlib, "fitz": fitz, "pymupdf": fitz,
               "pikepdf": pikepdf, "rasterio": rasterio, "lxml": lxml, "torchvision": torchvision, "polars": polars,
               "duckdb": duckdb, "brotli": brotli, "openvino": openvino, "grpc": grpc,
               "zlib": zlib, "bz2": bz2, "lzma": lzma, "zstandard": zstandard, "lz4": lz4, "blosc2": blosc2, "snappy": snappy,
               "sentencepiece": sentencepiece, "onnx": onnx, "google.protobuf": protobuf, "h5py": h5py, "tables": tables,
               "netCDF4": netCDF4, "pyarrow": pyarrow, "rapidocr_paddle": ocr, "rapidocr_onnxruntime": ocr}
# Of the libraries that clashes are about: tried wherever an import has brought them.
ALWAYS = ("numpy", "zlib", "cv2", "PIL", "h5py", "google.protobuf")


# --- which files answer for a version ---

# By the part of a name before ".so": a function that gives one number, or one that gives a part of it each time.
NUMBERS = {"libcudnn": "cudnnGetVersion", "libcudart": "cudaRuntimeGetVersion", "libnccl": "ncclGetVersion",
           "libcuda": "cuDriverGetVersion"}
PARTS = {"libcublas": "cublasGetProperty", "libcublasLt": "cublasLtGetProperty", "libcufft": "cufftGetProperty",
         "libcurand": "curandGetProperty", "libcusolver": "cusolverGetProperty", "libcusparse": "cusparseGetProperty"}
TEXTS = {"libz": "zlibVersion"}


def mapped_files():
    """Paths of the shared objects that are mapped, in the order of their addresses, each once."""
    found = {}
    with open("/proc/self/maps", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")
            if path[1] and ".so" in path[2] and not path[2].endswith(" (deleted)"):
                found["/" + path[2]] = None
    return list(found)


def version_of(path):
    """What the loaded file says of itself, or "". Nothing is loaded: RTLD_NOLOAD."""
    name = os.path.basename(path).partition(".so")[0]
    stem = re.sub(r"-[0-9a-f.]+$", "", name)  # a wheel's own copy: libz-1a2b3c4d
    if stem not in NUMBERS and stem not in PARTS and stem not in TEXTS:
        return ""
    library = ctypes.CDLL(path, os.RTLD_NOLOAD | os.RTLD_LAZY)
    if stem in TEXTS:
        function = getattr(library, TEXTS[stem])
        function.restype = ctypes.c_char_p
        return function().decode("ascii", "replace")
    if stem in PARTS:
        parts = []
        for part in range(3):
            value = ctypes.c_int()
            if getattr(library, PARTS[stem])(part, ctypes.byref(value)):
                return ""
            parts.append(str(value.value))
        return ".".join(parts)
    function = getattr(library, NUMBERS[stem])
    if stem == "libcudnn":
        function.restype, number = ctypes.c_size_t, function()
        major = 10000 if number >= 90000 else 1000  # cudnn_version.h: 8.9.7 is 8907, 9.1.0 is 90100
    else:
        value = ctypes.c_int()
        if function(ctypes.byref(value)):
            return ""
        number = value.value
        major = 10000 if stem == "libnccl" else 1000
        if stem != "libnccl":  # 12040 is 12.4
            return "%d.%d" % (number // 1000, number % 1000 // 10)
    return "%d.%d.%d" % (number // major, number % major // 100, number % 100)


def tell_libraries():
    for path in mapped_files():
        try:
            version = version_of(path)
        except (OSError, AttributeError):
            continue
        if version:
            tell("library", json.dumps({"path": path, "version": version}))


# --- the run ---


def unlabelled(version):
    return re.split("[+-]", version)[0]


def tell_other_metadata(loaded):
    """Of modules that call themselves another version than all distributions that bring them. Python 3.10 and later can tell."""
    try:
        from importlib import metadata
        brought = metadata.packages_distributions()
    except (ImportError, AttributeError):
        return
    for name in loaded:
        said = str(getattr(sys.modules[name], "__version__", "") or "")
        owners = sorted(set(brought.get(name, ())))
        written = [metadata.version(owner) for owner in owners]
        # A build's own label ("+cu130", "-1234-release") may be in one of the two only.
        if said and written and unlabelled(said) not in [unlabelled(version) for version in written]:
            tell("metadata", name, ", ".join(owner + " " + version for owner, version in zip(owners, written)))


def run_script(script, option):
    """One that the environment's bin/ has, in this process."""
    import runpy
    tell("step", "run", script, option)
    sys.argv = [os.path.join(os.path.dirname(sys.executable), script), option]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise RuntimeError("%s %s ends with %s" % (script, option, end.code))


def import_all():
    """The names of what was imported, a package once."""
    loaded = []
    for name in modules:
        if name.endswith(" --help"):
            run_script(*name.split())
            continue
        tell("step", "import", name)
        importlib.import_module(name)
        loaded.append("google.protobuf" if name.startswith("google.protobuf") else name.partition(".")[0])
        tell("version", loaded[-1], getattr(sys.modules[loaded[-1]], "__version__", "") or "-")
    return list(dict.fromkeys(loaded))


@contextlib.contextmanager
def of_any_release(name):
    """A release that lacks a name which a computation asks it for is not broken: that is told, and nothing computed.

    What is left of a package (no file, no version) lacks all names, and what its own code lacks is its own failure.
    """
    try:
        yield
    except AttributeError as error:
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        module = sys.modules[name]
        whole = getattr(module, "__file__", None) and getattr(module, "__version__", None)
        if trace.tb_frame.f_code.co_filename != compute.__code__.co_filename or not whole:
            raise
        tell("note", "%s %s is of another age than the computation here, which was left out: %s" % (name, module.__version__, error))


def compute(name):
    module = sys.modules[name]
    if name in ROUND_TRIPS:
        tell("step", "compute with", name)
        with of_any_release(name):
            ROUND_TRIPS[name](module)
    if name not in FRAMEWORKS:
        return
    framework = FRAMEWORKS[name]()
    tell("step", "devices of", name)
    devices = framework.devices(module)
    if framework.can_use_gpus and gpu_is_there() and devices in ([], ["cpu"]):
        tell("note", name + " sees no GPU, though one is there")
    for device in devices:
        for what in framework.computations:
            tell("step", "compute with %s on %s: %s" % (name, device, what))
            with of_any_release(name), framework.on(module, device):
                getattr(framework, what)(module, device)
        tell("step", "memory of %s on %s" % (name, device))
        tell("device", json.dumps(dict({"framework": name, "device": device}, **framework.describe(module, device))))


def tell_where(error):
    """The files of the traceback, the innermost first."""
    files, trace = [], error.__traceback__
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    for name in list(dict.fromkeys(reversed(files)))[:16]:
        tell("raised", name)


def in_words(error):
    """As Python's last line has it; of a SystemExit the status that the process would end with."""
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        return "SystemExit with status %d" % ((error.code or 0) & 0xff)
    return type(error).__name__ + (": " + str(error) if str(error) else "")


def main():
    try:
        loaded = import_all()
        for name in dict.fromkeys(loaded + [n for n in ALWAYS if n in sys.modules]):
            compute(name)
        tell("step", "versions of libraries")
        tell_libraries()
        tell_other_metadata(loaded)
        tell("step", "exit")
    except Wrong as error:
        tell("wrong", "a computed value is not the right one:", error)
        os._exit(1)
    except BaseException as error:
        tell_where(error)
        tell("exception", in_words(error))
        os._exit(1)
    tell("done")


main()
