"""Wrong solutions of parts 5 and 6, in PyTorch."""

from tests.assignments.variants import Variant
from tests.assignments.variants.build_the_transformer.changed import body


def norm(number: int, x: str, sublayer: str) -> str:
    """The call of `add_and_norm` with the weights of one norm."""
    return f'add_and_norm({x}, {sublayer}, w["gain{number}"], w["bias{number}"])'


def fed(x: str) -> str:
    """The call of `feed_forward`."""
    return f'feed_forward({x}, w["W1"], w["b1"], w["W2"], w["b2"])'


def encoder(*lines: str, price: float, name: str, why: str) -> Variant:
    """A wrong solution of part 5."""
    return Variant(name, body("encoder-layer", *lines), {"test-encoder-layer": price}, why)


def decoder(*lines: str, price: float, name: str, why: str) -> Variant:
    """A wrong solution of part 6."""
    return Variant(name, body("decoder-layer", *lines), {"test-decoder-layer": price}, why)


ASKED = "attention(x, x, mask)"
NONE = "torch.zeros_like({0})"
ENCODERS = [
    encoder(
        f"x = {norm(2, 'x', ASKED)}",
        f"return {norm(1, 'x', fed('x'))}",
        name="the encoder's norms swapped",
        price=0.5,
        why="what belongs to which norm",
    ),
    encoder(
        f"x = {norm(1, 'x', ASKED)}",
        f"return {norm(1, 'x', fed('x'))}",
        name="one norm's weights for both of the encoder",
        price=0.5,
        why="what belongs to which norm",
    ),
    encoder(
        f"return {norm(1, 'x', ASKED)}",
        name="no feed-forward network in the encoder",
        price=1.5,
        why="the sublayers, and the second norm's gain and bias",
    ),
    encoder(
        f"x = {norm(1, 'x', fed('x'))}",
        f"return {norm(2, 'x', ASKED)}",
        name="feed-forward first",
        price=1.5,
        why="right with the two the other way round",
    ),
    encoder(
        f"x = {norm(2, 'x', fed('x'))}",
        f"return {norm(1, 'x', ASKED)}",
        name="feed-forward first, with the norm that belongs to it",
        price=2,
        why="right with the two the other way round, and with the norms of each other",
    ),
    *(
        encoder(
            f"x = {norm(1, 'x', f'attention(x, x, {mask})')}",
            f"return {norm(2, 'x', fed('x'))}",
            name=f"the mask {what} in the encoder",
            price=1,
            why="what attention is asked",
        )
        for what, mask in [
            ("as numbers", "mask.float()"),
            ("to be added", "torch.where(mask, 0.0, -1e9)"),
            ("turned round", "mask.mT"),
            ("None", "None"),
            ("of the first sentence for all", "mask[:1].expand_as(mask)"),
        ]
    ),
    encoder(
        f"x = {norm(1, 'x', ASKED)}",
        f"return x + {fed('x')}",
        name="the encoder's last norm forgotten",
        price=1.5,
        why="the sublayers, and the second norm's gain and bias",
    ),
    encoder(
        f"x = x + {ASKED}",
        f"return {norm(2, 'x', fed('x'))}",
        name="the encoder's first norm forgotten",
        price=1,
        why="the sublayers",
    ),
    encoder(
        f"x = x + attention(*[{norm(1, 'x', NONE.format('x'))}] * 2, mask)",
        f"return x + {fed(norm(2, 'x', NONE.format('x')))}",
        name="norms before the sublayers",
        price=2.5,
        why="what attention is asked, the sublayers, and that the last norm stands at the end",
    ),
    encoder(
        f"x = {norm(1, ASKED, NONE.format('x'))}",
        f"return {norm(2, 'x', fed('x'))}",
        name="x not added to attention",
        price=1,
        why="the sublayers",
    ),
    encoder(
        f"x = {norm(1, 'x', ASKED)}",
        f"return {norm(2, fed('x'), NONE.format('x'))}",
        name="x not added to the feed-forward network",
        price=1,
        why="the sublayers",
    ),
    encoder(
        f"x = {norm(1, 'x', 'attention(x, x, torch.ones_like(mask))')}",
        f"return {norm(2, 'x', fed('x'))}",
        name="the mask not passed on",
        price=1,
        why="what attention is asked",
    ),
    encoder(
        f"z = {norm(1, 'x', ASKED)}",
        f"return {norm(2, 'x', fed('z'))}",
        name="x added to the feed-forward network, not what it read",
        price=1,
        why="the sublayers",
    ),
    encoder(
        f"x = {norm(1, 'x', ASKED + '.detach()')}",
        f"return {norm(2, 'x', fed('x'))}",
        name="attention detached",
        price=0.5,
        why="the gradients",
    ),
    encoder(
        f"x = {norm(1, 'x', ASKED)}",
        f"return {norm(2, 'x', fed('x.detach()'))}",
        name="what the feed-forward network reads detached",
        price=0.5,
        why="the gradients",
    ),
    encoder(
        f"x = {norm(1, 'x', ASKED)}",
        f"return {norm(2, 'x', fed('x') + '.detach()')}",
        name="what the feed-forward network returns detached",
        price=0.5,
        why="the gradients",
    ),
    encoder(
        f"x = {norm(1, 'x', ASKED)}".replace('w["bias1"]', '0 * w["bias1"]'),
        f"return {norm(2, 'x', fed('x'))}",
        name="the encoder's first bias forgotten",
        price=0.5,
        why="gain and bias",
    ),
    encoder(
        f"x = {norm(1, 'x', ASKED)}",
        f"x = {norm(1, 'x', NONE.format('x'))}",
        f"return {norm(2, 'x', fed('x'))}",
        name="the encoder's first norm twice",
        price=0.5,
        why="seen where gain and bias are not 1 and 0",
    ),
    encoder(
        f"x = {norm(1, 'x', ASKED)}",
        f"x = {norm(1, 'x', ASKED)}",
        f"return {norm(2, 'x', fed('x'))}",
        name="attention twice",
        price=2,
        why="how often attention is asked, and the sublayers",
    ),
]

SELF, CROSS = "self_attention(y, y, target_mask)", "cross_attention(y, memory, source_mask)"
FIRST, SECOND, THIRD = f"y = {norm(1, 'y', SELF)}", f"y = {norm(2, 'y', CROSS)}", f"return {norm(3, 'y', fed('y'))}"
DECODERS = [
    decoder(
        f"y = {norm(2, 'y', SELF)}",
        f"y = {norm(1, 'y', CROSS)}",
        THIRD,
        name="the decoder's norms swapped",
        price=0.5,
        why="what belongs to which norm",
    ),
    decoder(
        FIRST,
        f"y = {norm(2, 'y', 'cross_attention(memory, y, source_mask)')}",
        THIRD,
        name="the memory asks",
        price=1,
        why="right with queries and memory the other way round",
    ),
    decoder(
        f"y = {norm(1, 'y', 'self_attention(y, y, source_mask)')}",
        f"y = {norm(2, 'y', 'cross_attention(y, memory, target_mask)')}",
        THIRD,
        name="each attention with the mask of the other",
        price=1,
        why="right with the masks the other way round",
    ),
    decoder(
        f"y = {norm(1, 'y', CROSS)}",
        f"y = {norm(2, 'y', SELF)}",
        THIRD,
        name="cross-attention first",
        price=1.5,
        why="right with the two the other way round",
    ),
    decoder(
        FIRST,
        SECOND.replace("source_mask", "torch.ones_like(source_mask)"),
        THIRD,
        name="the source's mask not passed on",
        price=0.5,
        why="what cross-attention looks at",
    ),
    decoder(
        FIRST.replace("target_mask", "torch.ones_like(target_mask)"),
        SECOND,
        THIRD,
        name="the target's mask not passed on",
        price=1,
        why="what self-attention is asked",
    ),
    decoder(
        FIRST.replace("target_mask", "source_mask"),
        SECOND,
        THIRD,
        name="the source's mask in self-attention",
        price=1,
        why="what self-attention is asked",
    ),
    decoder(
        f"z = {norm(1, 'y', SELF)}",
        f"y = {norm(2, 'z', CROSS)}",  # CROSS asks with y
        THIRD,
        name="y before self-attention asks",
        price=1,
        why="what asks in cross-attention",
    ),
    decoder(
        f"y = {norm(1, SELF, NONE.format('y'))}",
        SECOND,
        THIRD,
        name="y not added to self-attention",
        price=1,
        why="what asks in cross-attention; the rest goes on from there",
    ),
    decoder(
        FIRST,
        f"y = {norm(2, CROSS, NONE.format('y'))}",
        THIRD,
        name="y not added to cross-attention",
        price=1,
        why="what is added",
    ),
    decoder(
        FIRST,
        SECOND,
        f"return {norm(3, fed('y'), NONE.format('y'))}",
        name="y not added to the decoder's feed-forward network",
        price=1,
        why="what is added",
    ),
    decoder(
        FIRST,
        f"return {norm(3, 'y', fed('y'))}",
        name="no cross-attention",
        price=2.5,
        why="what asks in it, what it looks at, and what is added",
    ),
    decoder(
        SECOND,
        THIRD,
        name="no self-attention",
        price=2,
        why="what it is asked, and what asks in cross-attention",
    ),
    decoder(
        FIRST,
        SECOND,
        "return y",
        name="no feed-forward network in the decoder",
        price=1.5,
        why="what is added, and the last norm's gain and bias",
    ),
    decoder(
        FIRST,
        SECOND.replace("memory", "y"),
        THIRD,
        name="cross-attention looks at the target",
        price=1,
        why="what it looks at; a mask of the source does not fit a target of another length",
    ),
    decoder(
        FIRST,
        SECOND,
        f"return {norm(2, 'y', fed('y'))}",
        name="the second norm's weights for the third",
        price=0.5,
        why="the last norm's gain and bias",
    ),
    decoder(
        FIRST,
        SECOND,
        f"return y + {fed('y')}",
        name="the decoder's last norm forgotten",
        price=1.5,
        why="what is normalised, and the last norm's gain and bias",
    ),
    decoder(
        FIRST,
        f"y = y + {CROSS}",
        THIRD,
        name="the decoder's second norm forgotten",
        price=1,
        why="what is normalised",
    ),
    decoder(
        FIRST,
        SECOND.replace("memory", "memory.detach()"),
        THIRD,
        name="the memory detached",
        price=0.5,
        why="the gradients",
    ),
    decoder(
        FIRST,
        SECOND,
        f"return {norm(3, 'y', fed('y.detach()'))}",
        name="what the decoder's feed-forward network reads detached",
        price=0.5,
        why="the gradients",
    ),
    decoder(
        FIRST.replace("target_mask", "torch.ones(2 * [y.shape[1]]).tril().bool().expand(len(y), -1, -1)"),
        SECOND,
        THIRD,
        name="a causal mask of its own in self-attention",
        price=1,
        why="what self-attention is asked",
    ),
    decoder(
        FIRST.replace("target_mask", "target_mask[:1].expand(len(y), -1, -1)"),
        SECOND,
        THIRD,
        name="the first sentence's mask for all in self-attention",
        price=1,
        why="what self-attention is asked",
    ),
    decoder(
        FIRST.replace("target_mask", "target_mask.mT"),
        SECOND,
        THIRD,
        name="the target's mask turned round",
        price=1,
        why="what self-attention is asked",
    ),
    decoder(
        FIRST.replace("target_mask", "target_mask.float()"),
        SECOND.replace("source_mask", "source_mask.float()"),
        THIRD,
        name="both masks as numbers",
        price=1.5,
        why="what both are asked; the rest goes on from there",
    ),
    *(
        decoder(
            FIRST,
            SECOND.replace("source_mask", mask),
            THIRD,
            name=f"the source's mask {what}",
            price=0.5,
            why="what cross-attention looks at",
        )
        for what, mask in [
            ("turned round", "source_mask.mT"),
            ("of the first sentence for all", "source_mask[:1].expand_as(source_mask)"),
        ]
    ),
    decoder(
        FIRST,
        SECOND.replace("cross_attention", "self_attention"),
        THIRD,
        name="self-attention called twice, not cross-attention",
        price=1,
        why="right where the second goes to cross-attention",
    ),
    decoder(
        FIRST,
        SECOND.replace("gain2", "gain1"),
        THIRD,
        name="the first norm's gain in the second",
        price=0.5,
        why="what belongs to which norm",
    ),
    decoder(
        FIRST,
        SECOND.replace("bias2", "bias1"),
        THIRD,
        name="the first norm's bias in the second",
        price=0.5,
        why="what belongs to which norm",
    ),
    decoder(
        FIRST.replace('w["bias1"]', '0 * w["bias1"]'),
        SECOND,
        THIRD,
        name="the decoder's first bias forgotten",
        price=0.5,
        why="gain and bias",
    ),
    decoder(
        FIRST.replace("y, target_mask", "target_mask, y"),
        SECOND.replace("memory, source_mask", "source_mask, memory"),
        THIRD,
        name="the mask as the second argument",
        price=5,
        why="attention cannot work with it",
    ),
]

VARIANTS = ENCODERS + DECODERS
