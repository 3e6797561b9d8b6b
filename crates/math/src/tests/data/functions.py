"""Writes functions.txt: what TensorFlow answers for elementary functions, as bits in hexadecimal."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1.2e-38, -1.2e-38, 1e-30,
           -1e-30, 88.0, 88.8, -87.0, -88.8, 9.1, -9.1, 13.9, 14.0, -13.9, -14.0, 3.9, 4.1, 10.0, -10.0, 1e4, -1e4, 1e6]
UNARY = {
    "exp": tf.exp, "expm1": tf.math.expm1, "log": tf.math.log, "log1p": tf.math.log1p, "sin": tf.sin, "cos": tf.cos,
    "tan": tf.tan, "asin": tf.asin, "acos": tf.acos, "atan": tf.atan, "sinh": tf.sinh, "cosh": tf.cosh, "tanh": tf.tanh,
    "asinh": tf.asinh, "acosh": tf.acosh, "atanh": tf.atanh, "sqrt": tf.sqrt, "rsqrt": tf.math.rsqrt,
    "reciprocal": tf.math.reciprocal, "sigmoid": tf.sigmoid, "softplus": tf.math.softplus, "softsign": tf.nn.softsign,
    "elu": tf.nn.elu, "selu": tf.nn.selu, "erf": tf.math.erf, "erfc": tf.math.erfc, "erfinv": tf.math.erfinv,
    "ndtri": tf.math.ndtri, "lgamma": tf.math.lgamma, "digamma": tf.math.digamma, "floor": tf.floor,
    "ceil": tf.math.ceil, "round": tf.round, "sign": tf.sign, "absolute": tf.abs, "square": tf.square,
    "bessel_i0": tf.math.special.bessel_i0, "bessel_i0e": tf.math.special.bessel_i0e,
    "bessel_i1": tf.math.special.bessel_i1, "bessel_i1e": tf.math.special.bessel_i1e,
    "bessel_k0": tf.math.special.bessel_k0, "bessel_k0e": tf.math.special.bessel_k0e,
    "bessel_k1": tf.math.special.bessel_k1, "bessel_k1e": tf.math.special.bessel_k1e,
    "bessel_j0": tf.math.special.bessel_j0, "bessel_j1": tf.math.special.bessel_j1,
    "bessel_y0": tf.math.special.bessel_y0, "bessel_y1": tf.math.special.bessel_y1,
    "dawsn": tf.math.special.dawsn, "expint": tf.math.special.expint, "fresnel_cos": tf.math.special.fresnel_cos,
    "fresnel_sin": tf.math.special.fresnel_sin, "spence": tf.math.special.spence,
}
BINARY = {
    "pow": tf.pow, "atan2": tf.atan2, "next_after": tf.math.nextafter, "xlogy": tf.math.xlogy,
    "xlog1py": tf.math.xlog1py, "xdivy": tf.math.xdivy, "div_no_nan": tf.math.divide_no_nan,
    "floor_div": tf.math.floordiv, "floor_mod": tf.math.floormod, "truncate_mod": tf.truncatemod,
    "squared_difference": tf.math.squared_difference, "larger": tf.maximum, "smaller": tf.minimum,
    "igamma": tf.math.igamma, "igammac": tf.math.igammac, "zeta": tf.math.zeta, "polygamma": tf.math.polygamma,
    "igamma_grad_a": lambda a, x: tf.raw_ops.IgammaGradA(a=a, x=x),
}


def hexadecimal(values):
    return " ".join("%x" % bits for bits in values.view("u%d" % values.itemsize))


def arguments(dtype, random, count):
    parts = [np.array(SPECIAL), random.normal(size=count), random.normal(size=count) * 10,
             np.exp(random.normal(size=count) * 8), random.uniform(-1, 1, size=count)]
    return np.concatenate(parts).astype(dtype)


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "functions.txt"), "w") as out:
    for dtype in (np.float32, np.float64):
        name = "f%d" % (8 * np.dtype(dtype).itemsize)
        random = np.random.default_rng(1)
        x = arguments(dtype, random, 12)
        for function, op in UNARY.items():
            print(name, function, file=out)
            print(hexadecimal(x), file=out)
            print(hexadecimal(op(tf.constant(x)).numpy()), file=out)
        pairs = np.array([(a, b) for a in SPECIAL[:11] for b in SPECIAL[:11]], dtype)
        a, b = (np.concatenate([p, arguments(dtype, random, 12)[len(SPECIAL):]]) for p in pairs.T)
        b[len(pairs):] = random.permutation(b[len(pairs):])
        for function, op in BINARY.items():
            left = a
            if function == "polygamma":
                left = np.round(np.abs(np.where(np.isfinite(a), a, 1.0))).clip(0, 20).astype(dtype)
            print(name, function, file=out)
            print(hexadecimal(left), file=out)
            print(hexadecimal(b), file=out)
            print(hexadecimal(op(tf.constant(left), tf.constant(b)).numpy()), file=out)
        alpha, beta = (np.exp(random.normal(size=30)).astype(dtype) for _ in range(2))
        x = random.uniform(size=30).astype(dtype)
        print(name, "betainc", file=out)
        for values in (alpha, beta, x, tf.math.betainc(alpha, beta, x).numpy()):
            print(hexadecimal(values), file=out)
