"""Runs of real frameworks that work, with all that they print at their most talkative."""
from __future__ import annotations

from dataclasses import dataclass, field

from broken_runs import ONNX


@dataclass
class Healthy:
    name: str
    environment: str
    code: str
    variables: dict[str, str] = field(default_factory=dict)


TORCH = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters())
for step in range(STEPS):
    loss = (model(torch.rand(8, 16)) - 1).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    log.info("step %d loss %.4f lr %g grad_norm %.3f", step, loss, 1e-3, 0.5)
""".replace("STEPS", "300")
TORCH_WORKERS = """
import torch, warnings
warnings.warn("This DataLoader will create more worker processes than the suggested max number", UserWarning)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(64, 4)), batch_size=8, num_workers=2)
for number, batch in enumerate(loader):
    log.info("batch %d mean %.3f", number, batch[0].mean())
"""
TORCH_COMPILE = """
import torch
step = torch.compile(lambda x: torch.nn.functional.gelu(x).sum() * 2, backend="aot_eager")
for size in (4, 8, 16):
    log.info("compiled: %.3f", step(torch.rand(size, requires_grad=True)))
"""
TORCH_GLOO = """
import torch, torch.distributed as dist, tempfile
dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
tensor = torch.ones(4); dist.all_reduce(tensor); log.info("reduced %s", tensor); dist.destroy_process_group()
"""
TORCH_NO_GPU = """
import torch
log.info("cuda available: %s, devices: %d", torch.cuda.is_available(), torch.cuda.device_count())
with torch.autocast("cpu", dtype=torch.bfloat16):
    log.info("%s", (torch.rand(8, 8) @ torch.rand(8, 8)).sum())
torch.save(torch.rand(4), "/tmp/why-tensor.pt"); torch.load("/tmp/why-tensor.pt")
"""
KERAS = """
import keras, numpy
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.summary()
model.fit(numpy.random.rand(256, 8), numpy.random.rand(256), epochs=3, batch_size=8)
"""
TF = """
import tensorflow as tf
@tf.function(autograph=False)
def step(x): return tf.reduce_sum(tf.matmul(x, x))
data = tf.data.Dataset.range(50).batch(5).prefetch(1)
for batch in data: log.info("batch %s %s", batch.numpy(), step(tf.ones((4, 4))).numpy())
log.info("GPUs: %s", tf.config.list_physical_devices("GPU"))
"""
PADDLE = """
import paddle
model = paddle.nn.Linear(8, 1)
optimizer = paddle.optimizer.Adam(parameters=model.parameters())
for step in range(50):
    loss = (model(paddle.rand([4, 8])) - 1).square().mean()
    loss.backward(); optimizer.step(); optimizer.clear_grad()
    log.info("step %d loss %.4f", step, float(loss))
"""
JAX = """
import jax, jax.numpy as jnp
gradient = jax.jit(jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)))
for size in (4, 8, 16): log.info("%s on %s", gradient(jnp.ones(size))[0], jax.devices())
"""
SKLEARN = """
import numpy, warnings
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
x, y = numpy.random.rand(120, 4) * 1000, numpy.random.randint(0, 2, 120)
GridSearchCV(SVC(), {"C": [0.1, 1, 10], "gamma": ["scale", 0.1]}, verbose=4).fit(x, y)
LogisticRegression(max_iter=2, solver="saga").fit(x, y)
"""
LIGHTGBM = """
import lightgbm, numpy
lightgbm.train({"verbosity": 2, "objective": "regression"}, lightgbm.Dataset(numpy.random.rand(500, 5),
               numpy.random.rand(500)), num_boost_round=30)
"""
XGBOOST = """
import xgboost, numpy
xgboost.train({"verbosity": 3}, xgboost.DMatrix(numpy.random.rand(200, 4), label=numpy.random.rand(200)), 20)
"""
ORT = """
import onnxruntime
onnxruntime.set_default_logger_severity(0)
""" + ONNX.replace("PROVIDERS", "['CPUExecutionProvider']") + """
import numpy
log.info("%s", session.run(None, {"x": numpy.ones(1, "float32")}))
"""
TEXT = """
import spacy, tokenizers, tokenizers.models, tokenizers.trainers
nlp = spacy.blank("en"); nlp.add_pipe("sentencizer")
for sentence in nlp("The driver is new. The library was found. Nothing failed.").sents: log.info("%s", sentence)
import transformers
transformers.logging.set_verbosity_debug()
config = transformers.BertConfig(); log.info("%s", config)
"""
TABLES = """
import pandas, pyarrow, h5py, numpy, matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
frame = pandas.DataFrame(numpy.random.rand(50, 3), columns=list("abc"))
log.info("%s", pyarrow.Table.from_pandas(frame).schema)
plt.plot(frame["a"]); plt.savefig("/tmp/why-plot.png")
"""
IMAGES = """
import cv2, numpy
image = numpy.random.randint(0, 255, (64, 64, 3), "uint8")
for kernel in (3, 5, 7): log.info("%s", cv2.GaussianBlur(image, (kernel, kernel), 0).mean())
log.info(cv2.getBuildInformation())
"""
TRANSLATE = """
import ctranslate2, faiss, numpy
log.info("%s", ctranslate2.get_supported_compute_types("cpu"))
index = faiss.IndexFlatL2(8); index.add(numpy.random.rand(100, 8).astype("float32")); log.info("%d", index.ntotal)
"""
OCR = "import torch\nimport paddleocr\nlog.info('paddleocr %s', paddleocr.__version__)\n" + PADDLE
SENTENCES = "import sentencepiece\nlog.info('sentencepiece: %s', sentencepiece.SentencePieceProcessor())\n"
OPTIONAL = """
import importlib
for name in ("flash_attn", "xformers", "apex", "tensorrt", "bitsandbytes", "deepspeed"):
    try:
        importlib.import_module(name)
    except ImportError:
        log.debug("optional package %s is not there, using the built-in path", name)
"""
WARNED = """
import warnings
import numpy, pandas
numpy.seterr(all="warn")
numpy.array([0.0, 1.0]) / numpy.array([0.0, 0.0]); numpy.float32(1e30) * numpy.float32(1e30); numpy.log(numpy.zeros(1)); numpy.mean([])
frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
frame[frame.a > 1]["a"] = 0
pandas.to_datetime(["1/2/2024", "2024-13-01"], errors="coerce")
warnings.warn("The default value of n_init will change", FutureWarning); warnings.warn("unclosed file", ResourceWarning)
warnings.warn("pkg_resources is deprecated as an API", DeprecationWarning)
log.info("%s", frame.describe())
"""
CLASSIFIERS = """
import numpy, warnings
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import classification_report
from sklearn.neural_network import MLPClassifier
x, y = numpy.random.rand(80, 4), numpy.random.randint(0, 2, 80)
MLPClassifier(max_iter=3, verbose=True).fit(x, y)
KMeans(90 - 20).fit(numpy.ones((80, 2)))
print(classification_report(y, numpy.zeros(80)))
"""
MEDIA = """
import cv2, numpy, os
for name in ("absent.mp4", "/tmp/why-broken.mp4"):
    open("/tmp/why-broken.mp4", "wb").write(b"not a film" * 50)
    capture = cv2.VideoCapture(name)
    log.warning("%s opened: %s", name, capture.isOpened())
writer = cv2.VideoWriter("/tmp/why-film.mp4", cv2.VideoWriter_fourcc(*"MJPG"), 10, (64, 64))
for _ in range(20): writer.write(numpy.random.randint(0, 255, (64, 64, 3), "uint8"))
writer.release(); log.info("image: %s", cv2.imread("absent.png"))
"""
FONTS = """
import matplotlib; matplotlib.use("agg")
import matplotlib.pyplot as plt
plt.rcParams["font.family"] = ["Helvetica Neue", "SimHei"]
for n in range(25): plt.figure(); plt.title("\\u635f\\u5931"); plt.plot([1, 2]); plt.savefig("/tmp/why-plot.png")
"""
SERVER = """
import threading, urllib.request, urllib.error, time, warnings
import fastapi, uvicorn
app = fastapi.FastAPI()
@app.on_event("startup")
def start(): log.info("model loaded")
@app.get("/predict")
def predict(n: int): return {"n": n}
@app.get("/broken")
def broken(): raise fastapi.HTTPException(503, "try later")
server = uvicorn.Server(uvicorn.Config(app, port=18765, log_level="trace"))
thread = threading.Thread(target=server.run); thread.start()
while not server.started: time.sleep(0.1)
for path in ["/predict?n=%d" % n for n in range(40)] + ["/absent", "/predict?n=x", "/broken"]:
    try: urllib.request.urlopen("http://127.0.0.1:18765" + path).read()
    except urllib.error.HTTPError as error: log.error("request failed: %s, retried", error)
server.should_exit = True; thread.join()
"""
TESTED = """
import pathlib, subprocess, sys, tempfile
place = pathlib.Path(tempfile.mkdtemp())
(place / "test_it.py").write_text('''
import pytest, warnings, numpy
def test_error_is_raised():
    with pytest.raises(RuntimeError, match="out of memory"): raise RuntimeError("device out of memory")
@pytest.mark.skip(reason="no CUDA device")
def test_gpu(): pass
@pytest.mark.xfail
def test_later(): raise ValueError("not yet")
@pytest.mark.parametrize("n", range(60))
def test_many(n): warnings.warn(f"deprecated {n}", DeprecationWarning); assert numpy.ones(n).sum() == n
''')
print(subprocess.run([sys.executable, "-m", "pytest", "-v", "-rA", "-W", "default", str(place)], capture_output=True, text=True).stdout)
"""
INSTALLED = """
import pathlib, subprocess, sys, tempfile
place = pathlib.Path(tempfile.mkdtemp())
(place / "setup.py").write_text("from setuptools import setup\\nsetup(name='tiny_tool', version='1.0', py_modules=['tiny'], license='MIT')\\n")
(place / "tiny.py").write_text("x = 1\\n")
for options in (["install", "-v", "--no-index", "--no-build-isolation", "--target", str(place / "to"), str(place)], ["list", "-v"], ["check"], ["debug"]):
    run = subprocess.run([sys.executable, "-m", "pip", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(run.stdout)
"""
TRACED = """
import tensorflow as tf
@tf.function
def double(x): return x * 2
for n in range(12): double(n)
model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=(3,)), tf.keras.layers.Dropout(0.9)])
model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensor_slices((tf.ones((20, 3)), tf.ones((20, 4)))).batch(4)
model.fit(data, epochs=3, steps_per_epoch=10)
model.save("/tmp/why-model.h5")
log.info("%s", tf.random.normal((2, 2), seed=1))
tf.get_logger().warning("AutoGraph could not transform a function and will run it as-is")
"""
NUMBERS = """
import jax, jax.numpy as jnp, numpy
log.info("%s", jnp.arange(3, dtype="float64") + numpy.float64(1))
step = jax.jit(lambda x: x[0] + 1, donate_argnums=0)
step(jnp.ones(4)); log.info("%s", jax.local_devices())
with jax.debug_nans(False): log.info("%s", jnp.log(-jnp.ones(2)))
jax.debug.print("inside {x}", x=jnp.ones(1)); jax.print_environment_info()
"""
SCHEDULED = """
import torch, warnings
model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 1, norm_first=True), 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
for _ in range(3): schedule.step(5)
scaler = torch.cuda.amp.GradScaler()
torch.nn.functional.mse_loss(torch.ones(2), torch.ones(2, 1)); torch.tensor(torch.ones(1)); torch.meshgrid(torch.ones(2), torch.ones(2))
with torch.cuda.amp.autocast(): log.info("%s", model(torch.rand(2, 1, 8)).mean())
torch.utils.checkpoint.checkpoint(torch.nn.Linear(2, 2), torch.ones(1, 2))
with torch.profiler.profile() as profile: torch.rand(20, 20) @ torch.rand(20, 20)
print(profile.key_averages().table())
"""
FACES = """
import mediapipe
log.info("mediapipe %s", mediapipe.__version__)
from absl import logging as absl_log
absl_log.warning("Error in a previous attempt, going on"); absl_log.error("CANCELLED: RPC retried")
"""
BOOSTED = """
import xgboost, numpy
data = xgboost.DMatrix(numpy.random.rand(200, 4), label=numpy.random.randint(0, 2, 200))
model = xgboost.train({"verbosity": 2, "nonsense": 1, "objective": "binary:logistic", "eval_metric": ["auc", "logloss"]}, data, 15, evals=[(data, "train")])
model.save_model("/tmp/why.deprecated"); model.save_model("/tmp/why.json")
"""
SESSIONS = ORT.replace("severity(0)", "severity(1)") + """
options = onnxruntime.SessionOptions(); options.enable_profiling = False; options.intra_op_num_threads = 2
log.info("%s of %s", session.get_providers(), onnxruntime.get_device())
"""

NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
TALKATIVE = {"TF_CPP_MAX_VLOG_LEVEL": "1", "TF_CPP_MIN_LOG_LEVEL": "0", "TORCH_CPP_LOG_LEVEL": "INFO", "GLOG_v": "3",
             "GLOG_logtostderr": "1", "TORCH_LOGS": "+dynamo,+aot", "JAX_LOGGING_LEVEL": "DEBUG",
             "CT2_VERBOSE": "1", "TRANSFORMERS_VERBOSITY": "debug", "NCCL_DEBUG": "INFO"}

RUNS = [
    ("torch", "cpu", TORCH), ("torch-workers", "cpu", TORCH_WORKERS), ("torch-compile", "cpu", TORCH_COMPILE),
    ("torch-gloo", "cpu", TORCH_GLOO), ("torch-no-gpu", "cpu", TORCH_NO_GPU), ("keras", "cpu", KERAS),
    ("tensorflow", "cpu", TF), ("paddle", "cpu", PADDLE), ("paddle-tensorflow", "cpu", PADDLE + TF),
    ("torch-paddle", "cpu", TORCH + PADDLE), ("newest-torch", "newest", TORCH), ("newest-tensorflow", "newest", TF),
    ("newest-keras", "newest", KERAS), ("jax", "newest", JAX), ("newest-compile", "newest", TORCH_COMPILE),
    ("ocr", "ocr", OCR), ("ocr-sklearn", "ocr", SKLEARN), ("ocr-torch", "ocr", TORCH_WORKERS),
    ("onnxruntime", "serving", ORT), ("xgboost", "serving", XGBOOST), ("translate", "serving", TRANSLATE),
    ("serving-torch", "serving", TORCH_NO_GPU), ("sklearn", "packages", SKLEARN), ("lightgbm", "packages", LIGHTGBM),
    ("text", "packages", TEXT), ("tables", "packages", TABLES), ("images", "packages", IMAGES),
    ("tensorflow-2.4", "conflict4", TF), ("torch-1.8", "conflict4", TORCH),
    ("sentencepiece", "conflict4", SENTENCES),
]
# Their own loggers are talkative enough.
WARNED_RUNS = [
    ("warnings", "server", WARNED), ("uvicorn", "server", SERVER), ("pytest", "server", TESTED), ("pip", "server", INSTALLED),
    ("fonts", "server", FONTS), ("classifiers", "packages", CLASSIFIERS), ("media", "packages", MEDIA),
    ("mediapipe", "packages", FACES), ("retracing", "cpu", TRACED), ("schedules", "cpu", SCHEDULED),
    ("jax-numbers", "newest", NUMBERS), ("boosting", "serving", BOOSTED), ("sessions", "serving", SESSIONS),
]
SCENARIOS = [Healthy(f"healthy-{name}-{kind}", environment, OPTIONAL + code, variables)
             for name, environment, code in RUNS
             for kind, variables in (("plain", NO_GPU), ("talkative", NO_GPU | TALKATIVE))]
SCENARIOS += [Healthy(f"healthy-{name}", environment, code, NO_GPU) for name, environment, code in WARNED_RUNS]
