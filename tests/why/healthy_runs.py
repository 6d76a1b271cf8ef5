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
SENTENCES = "import sentencepiece\nlog.info('sentencepiece %s', sentencepiece.__version__)\n"
OPTIONAL = """
import importlib
for name in ("flash_attn", "xformers", "apex", "tensorrt", "bitsandbytes", "deepspeed"):
    try:
        importlib.import_module(name)
    except ImportError:
        log.debug("optional package %s is not there, using the built-in path", name)
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
SCENARIOS = [Healthy(f"healthy-{name}-{kind}", environment, OPTIONAL + code, variables)
             for name, environment, code in RUNS
             for kind, variables in (("plain", NO_GPU), ("talkative", NO_GPU | TALKATIVE))]
