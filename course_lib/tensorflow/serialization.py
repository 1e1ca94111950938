"""What Keras expects of a layer or a model, written once: name, dtype and trainable, a config, symbolic calls."""

import functools
import inspect
from dataclasses import asdict, is_dataclass

import keras

from course_lib.models import position_tables as positions

serializable = keras.saving.register_keras_serializable("course_lib")

# the arguments of keras.layers.Layer that our constructors take beside their own, by name
OPTIONS = tuple(
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
    for name, default in (("name", None), ("dtype", None), ("trainable", True))
)


_FROZEN = "trainable parts"  # of a config; with a space, so that it is nobody's argument
_KIND = "class of settings"  # of a configuration within a config, likewise: an AlbertConfig where a BertConfig may be


class Absent(keras.KerasTensor):
    """A symbolic output in the place of a None: Keras knows outputs that are tensors only."""

    def __init__(self):
        super().__init__((), "bool", name="absent")


class Portable:
    """Mix-in of every layer and model, in front of Keras's own class.

    - The constructor takes Keras's `name`, `dtype` (also of all that it builds) and `trainable` besides its arguments.
    - `get_config` holds these and the constructor's arguments, so that `.keras` files, `keras.models.clone_model`,
      `copy.deepcopy` and pickle work. An attention function of your own must be registered with Keras for that.
      Parts that were frozen, `model.bert.trainable = False`, stay frozen in all of these; Keras's own forget it.
    - A call with `keras.Input`s returns what one with tensors returns, None where nothing is.
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = _recorded(cls.__init__)
        if cls.__module__.startswith("course_lib."):  # other people's subclasses are theirs to register
            serializable(cls)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs, **vars(self).pop("_named", {}))
        self.supports_masking = True  # else Keras warns, and no later layer sees what `Embedding(mask_zero=True)` hid
        self.built = True  # the weights are there; else Keras traces every layer once more before the first call

    def __call__(self, *args, **kwargs):
        """As Keras's own; the outputs of a symbolic call have None where those of `call` have."""
        outputs = super().__call__(*args, **kwargs)
        if isinstance(outputs, tuple) and isinstance(outputs[0], keras.KerasTensor):
            outputs = keras.tree.map_structure(lambda x: None if isinstance(x, Absent) else x, outputs)
        return outputs

    def compute_output_spec(self, *args, **kwargs):
        """The symbolic outputs of a symbolic call."""
        args, kwargs = keras.tree.map_structure(_dense, (args, kwargs))
        outputs = super().compute_output_spec(*args, **kwargs)
        return keras.tree.map_structure(lambda x: Absent() if x is None else x, outputs)

    def get_config(self) -> dict:
        """The constructor's arguments, and Keras's own; which parts are trained, where that is not as their whole."""
        differ = {name: part.trainable for name, part, whole in parts_of(self) if part.trainable != whole.trainable}
        arguments = {name: _plain(value) for name, value in self._arguments.items()}
        return {**super().get_config(), **arguments, **({_FROZEN: differ} if differ else {})}

    @classmethod
    def from_config(cls, config: dict):
        """The layer or model that `get_config` describes, with fresh weights."""
        parameters = inspect.signature(cls.__init__).parameters
        return cls(**{name: _restored(value, parameters.get(name)) for name, value in config.items()})


def _recorded(init):
    """A constructor that keeps its arguments and takes OPTIONS; `dtype` holds for all that is built meanwhile."""
    signature = inspect.signature(init)
    parameters = list(signature.parameters.values())
    passed_on = parameters[-1].kind is inspect.Parameter.VAR_KEYWORD  # a subclass in Keras's style, with **kwargs
    options = [option for option in OPTIONS if option.name not in signature.parameters and not passed_on]

    @functools.wraps(init)
    def construct(self, *args, **kwargs):
        differ = kwargs.pop(_FROZEN, {})  # here, as a subclass may have a from_config of its own
        given = {option.name: kwargs.pop(option.name) for option in options if option.name in kwargs}
        if type(self).__init__ is construct:  # else a subclass, whose own arguments count
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            _, *names = bound.arguments
            arguments = {name: bound.arguments[name] for name in names}
            if passed_on:
                arguments |= arguments.pop(parameters[-1].name)
            own = {option.name for option in OPTIONS}
            # past Keras's __setattr__, which would look for weights in them
            vars(self)["_arguments"] = {name: value for name, value in arguments.items() if name not in own}
        if given.get("name") is not None:
            vars(self)["_named"] = {"name": given["name"]}
        if given.get("dtype") is None:
            init(self, *args, **kwargs)
        else:
            outer = keras.config.dtype_policy()
            keras.config.set_dtype_policy(keras.dtype_policies.get(given["dtype"]))
            try:
                init(self, *args, **kwargs)
            finally:
                keras.config.set_dtype_policy(outer)
        if not given.get("trainable", True):
            self.trainable = False  # of every part; Keras's own argument would reach the outermost alone
        if differ:
            for name, part, _ in parts_of(self):  # a whole comes before its parts, which follow it at first
                part.trainable = differ.get(name, part.trainable)

    construct.__signature__ = signature.replace(parameters=[*parameters, *options])
    return construct


def parts_of(whole, prefix=""):
    """Each layer that attributes and lists lead to, as (dotted name, layer, the layer it is a part of)."""
    for attribute, value in vars(whole).items():
        if attribute.startswith("_"):  # Keras's own book-keeping holds every layer once more
            continue
        several = isinstance(value, list)
        for i, part in enumerate(value if several else [value]):
            if isinstance(part, keras.layers.Layer):
                name = f"{prefix}{attribute}.{i}" if several else prefix + attribute
                yield name, part, whole
                yield from parts_of(part, name + ".")


def _dense(x):
    """A symbol that is marked as sparse without the mark, which Keras gives every symbol times a number."""
    return keras.KerasTensor(x.shape, x.dtype) if isinstance(x, keras.KerasTensor) and x.sparse else x


def _plain(value):
    if is_dataclass(value):
        return {**asdict(value), _KIND: type(value).__name__}
    return keras.saving.serialize_keras_object(value)


def _restored(value, parameter):
    if parameter is None or parameter.name == "dtype" or not isinstance(value, dict):
        return value
    if is_dataclass(parameter.annotation):
        kind = value.get(_KIND)  # absent in files of before there were kinds of a configuration
        kinds = [parameter.annotation, *parameter.annotation.__subclasses__()]
        chosen = next((one for one in kinds if one.__name__ == kind), parameter.annotation)
        return chosen(**{name: setting for name, setting in value.items() if name != _KIND})
    return keras.saving.deserialize_keras_object(value)


def made_by(maker, *arguments):
    """As `positions.made_by`, and Keras can save the function: as the call that made it, of a registered maker."""
    return lambda function: Made(function, maker, arguments)


@serializable
class Made(positions.Made):
    """A function and the call that made it, which is its config."""

    def get_config(self) -> dict:
        """The maker and its arguments."""
        parts = [keras.saving.serialize_keras_object(part) for part in (self.maker, *self.arguments)]
        return {"maker": parts[0], "arguments": parts[1:]}

    @classmethod
    def from_config(cls, config: dict):
        """Make the function anew."""
        maker, *arguments = (
            keras.saving.deserialize_keras_object(part) for part in (config["maker"], *config["arguments"])
        )
        return maker(*arguments)
