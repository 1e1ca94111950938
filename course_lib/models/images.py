"""What models of images share: how large an image is, and the checks of a batch of them.

A batch has its channels in front, (B, C, height, width), in every framework.
"""

from course_lib.models.fields import is_number


def size_of(name: str, value) -> tuple[int, int]:
    """An edge, or a pair (height, width), as such a pair; ValueError for what is neither, in pixels of 1 or more."""
    pair = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(pair) != 2 or not all(is_number(n) and isinstance(n, int) and n >= 1 for n in pair):
        raise ValueError(f"{name} must be an integer of 1 or more, or two of them (height, width); got {value!r}")
    return pair


def check_images(shape, dtype, n_channels: int, size=None, name: str = "images", advice: str = "") -> None:
    """Check a batch of images by its shape and the name of its type.

    Parameters
    ----------
    shape : of the batch; None stands for a length that is not known yet
    n_channels : how many the model reads
    size : (height, width) that the images must have; None: any
    name : of the argument, for the messages
    advice : the end of the message about another size

    Raises
    ------
    TypeError : numbers that are no floating point, such as the bytes 0 ... 255 of a file.
    ValueError : other axes, other channels, another size.
    """
    shape = tuple(shape)
    expected = f"(B, {n_channels}, height, width)"
    if "float" not in str(dtype):
        more = "; divide bytes by 255, so that they lie in 0 ... 1" if "int" in str(dtype) else ""
        raise TypeError(f"{name} must be numbers of floating point, got {dtype}{more}")
    if len(shape) != 4:
        more = "; one image becomes a batch by images[None]" if len(shape) == 3 else ""
        raise ValueError(f"{name} must have shape {expected}, got {_show(shape)}{more}")
    if shape[1] not in (None, n_channels):
        more = "; channels that stand last go in front by np.moveaxis(images, -1, 1)" if shape[3] == n_channels else ""
        raise ValueError(f"{name} must have shape {expected}, got {_show(shape)}{more}")
    if size is not None and any(n not in (None, m) for n, m in zip(shape[2:], size, strict=True)):
        raise ValueError(
            f"{name} must be of {size[0]} x {size[1]} pixels (height x width), got {shape[2]} x {shape[3]}{advice}"
        )


def check_patches(height: int | None, width: int | None, patch_size: int) -> None:
    """Raise ValueError unless square patches of an edge fill an image; an edge that is not known yet passes."""
    if patch_size < 1 or any(n is not None and (n < patch_size or n % patch_size) for n in (height, width)):
        raise ValueError(
            f"an image of {height} x {width} pixels (height x width) cannot be cut into patches of {patch_size} x "
            f"{patch_size}: give it edges that are multiples of that"
        )


def _show(shape) -> str:
    return "(" + ", ".join("?" if n is None else str(n) for n in shape) + ")"
