"""Learns the exclusive or with a tiny network, in plain Python."""

import json
import math
import os
import random

random.seed(int(os.environ.get("SEED", "1")))
POINTS = [((0, 0), 0), ((0, 1), 1), ((1, 0), 1), ((1, 1), 0)]
HIDDEN = int(os.environ.get("HIDDEN", "4"))


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


w1 = [[random.uniform(-1, 1) for _ in range(3)] for _ in range(HIDDEN)]
w2 = [random.uniform(-1, 1) for _ in range(HIDDEN + 1)]


def forward(x):
    h = [sigmoid(w[0] * x[0] + w[1] * x[1] + w[2]) for w in w1]
    return h, sigmoid(sum(w * v for w, v in zip(w2, h + [1])))


for epoch in range(1, 8001):
    loss = 0.0
    for x, y in POINTS:
        h, out = forward(x)
        loss += (out - y) ** 2
        d = (out - y) * out * (1 - out)
        for i in range(HIDDEN):
            dh = d * w2[i] * h[i] * (1 - h[i])
            w2[i] -= 2 * d * h[i]
            for j, v in enumerate((x[0], x[1], 1)):
                w1[i][j] -= 2 * dh * v
        w2[HIDDEN] -= 2 * d
    if epoch % 2000 == 0:
        print(json.dumps({"epoch": epoch, "loss": round(loss, 5)}), flush=True)

print(json.dumps({"accuracy": sum((forward(x)[1] > 0.5) == (y == 1) for x, y in POINTS) / 4}))
