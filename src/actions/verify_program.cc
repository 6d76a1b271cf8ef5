// The program of the child. It tells what it does on the descriptor that its first argument names,
// a line for each step, so that a crash is known by the last one. A value that is not the right one
// is an AssertionError. Many conflicts show only in a computation: real imports that succeed prove
// little.
#include "actions/verify.h"

namespace cohabit {

const char* const kVerifyProgram = R"PYTHON(
import importlib, os, sys

channel = int(sys.argv[1])
modules = sys.argv[2:]


def tell(kind, *words):
    line = " ".join([kind, *map(str, words)]).replace("\n", " ")
    os.write(channel, (line[:2000] + "\n").encode("utf-8", "replace"))


def torch(m):
    a = m.ones(64, 64)
    assert float((a @ a)[0, 0]) == 64
    assert tuple(m.nn.Conv2d(3, 8, 3)(m.ones(1, 3, 16, 16)).shape) == (1, 8, 14, 14)
    b = m.eye(8) * 2
    assert float(m.svd(b)[1].sum()) == 16
    assert m.rand(4).shape == (4,)


def tensorflow(m):
    if hasattr(m, "function"):
        a = m.ones((64, 64))
        assert float(m.matmul(a, a)[0][0]) == 64
        out = m.nn.conv2d(m.ones((1, 16, 16, 3)), m.ones((3, 3, 3, 8)), 1, "VALID")
        assert tuple(out.shape) == (1, 14, 14, 8) and float(out[0][0][0][0]) == 27
        assert float(m.function(lambda x: x * 2)(m.constant(3.0))) == 6


def paddle(m):
    a = m.ones([64, 64])
    assert float(m.matmul(a, a)[0][0]) == 64
    assert list(m.nn.Conv2D(3, 8, 3)(m.ones([1, 3, 16, 16])).shape) == [1, 8, 14, 14]


def jax(m):
    import jax.numpy as numbers
    a = numbers.ones((64, 64))
    assert float((a @ a)[0, 0]) == 64
    assert abs(float(numbers.linalg.solve(numbers.eye(4) * 2, numbers.ones(4))[0]) - 0.5) < 1e-6


def numpy(m):
    a = m.ones((64, 64))
    assert (a @ a)[0, 0] == 64 and m.linalg.solve(m.eye(4) * 2, m.ones(4))[0] == 0.5


def cv2(m):
    import numpy as n
    image = (n.arange(64 * 64 * 3) % 255).reshape(64, 64, 3).astype("uint8")
    good, png = m.imencode(".png", image)
    assert good and (m.imdecode(png, 1) == image).all()


def zlib(m):
    assert m.decompress(m.compress(b"a" * 100000)) == b"a" * 100000


def sentencepiece(m):
    import io
    out = io.BytesIO()
    lines = ["hello world this is a test of the thing", "another line of words here"] * 50
    m.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, vocab_size=30,
                                 hard_vocab_limit=False, minloglevel=2)
    assert m.SentencePieceProcessor(model_proto=out.getvalue()).encode("hello", out_type=str)


def onnx(m):
    from onnx import TensorProto, helper
    node = helper.make_node("Relu", ["x"], ["y"])
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    graph = helper.make_graph([node], "g", [value],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
    again = m.ModelProto()
    again.ParseFromString(helper.make_model(graph).SerializeToString())
    assert again.graph.node[0].op_type == "Relu"


def h5py(m):
    import numpy as n
    file = m.File("x.h5", "w", driver="core", backing_store=False)
    file.create_dataset("a", data=n.arange(1000), compression="gzip")
    assert file["a"][5] == 5


def faiss(m):
    import numpy as n
    data = n.random.rand(2000, 16).astype("float32")
    index = m.IndexFlatL2(16)
    index.add(data)
    assert (index.search(data[:50], 1)[1][:, 0] == n.arange(50)).all()


def xgboost(m):
    import numpy as n
    data = m.DMatrix(n.random.rand(500, 5), label=n.random.rand(500))
    m.train({"max_depth": 2, "verbosity": 0}, data, 2)


def ctranslate2(m):
    import numpy as n
    assert m.get_supported_compute_types("cpu")
    m.StorageView.from_array(n.ones((4, 4), "float32"))


def pyarrow(m):
    import pyarrow.parquet as parquet
    table = m.table({"a": list(range(1000))})
    for codec in ("snappy", "gzip", "zstd"):
        out = m.BufferOutputStream()
        parquet.write_table(table, out, compression=codec)
        assert parquet.read_table(m.BufferReader(out.getvalue())).num_rows == 1000


def drawn(text):
    from PIL import Image, ImageDraw, ImageFont
    try:
        font, times = ImageFont.load_default(48), 1
    except TypeError:  # Pillow before 10.1 has one size
        font, times = ImageFont.load_default(), 4
    image = Image.new("RGB", (480 // times, 120 // times), "white")
    ImageDraw.Draw(image).text((30 // times, 30 // times), text, font=font, fill="black")
    return image.resize((480, 120))


def rapidocr_paddle(m):
    import numpy as n
    found, _ = m.RapidOCR()(n.asarray(drawn("COHABIT 2026"))[:, :, ::-1])
    text = "".join(line[1] for line in found or []).replace(" ", "").upper()
    assert text == "COHABIT2026", "the drawn text COHABIT 2026 was read as " + repr(text)


rapidocr_onnxruntime = rapidocr_paddle
computations = dict(globals())
loaded = []
try:
    for name in modules:
        tell("step", "import", name)
        importlib.import_module(name)
        loaded.append(name.partition(".")[0])
        tell("version", loaded[-1], getattr(sys.modules[loaded[-1]], "__version__", "") or "-")
    for name in dict.fromkeys(loaded + [n for n in ("numpy", "zlib", "cv2") if n in sys.modules]):
        compute = computations.get(name)
        if callable(compute) and name not in ("tell", "drawn", "importlib"):
            tell("step", "compute with", name)
            compute(sys.modules[name])
    tell("step", "exit")
except AssertionError as error:
    tell("wrong", "a computed value is not the right one" + (str(error) and ": " + str(error)))
    os._exit(1)
except BaseException as error:
    tell("exception", type(error).__name__ + ": " + str(error))
    os._exit(1)
tell("done")
)PYTHON";

}  // namespace cohabit
