"""The application of onnx_server.py: predictions of the network in $NETWORK on $THREADS threads."""
import os

import numpy as np
import onnxruntime
import orjson
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(os.environ["THREADS"])
session = onnxruntime.InferenceSession(os.environ["NETWORK"], options)
name = session.get_inputs()[0].name


async def predict(request):
    rows = np.asarray(orjson.loads(await request.body())["instances"], np.float32)
    outputs = session.run(None, {name: rows})[0]
    return Response(orjson.dumps({"predictions": outputs}, option=orjson.OPT_SERIALIZE_NUMPY),
                    media_type="application/json")


app = Starlette(routes=[Route("/v1/models/model:predict", predict, methods=["POST"])])
