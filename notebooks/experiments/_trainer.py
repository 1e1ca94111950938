"""The peer: the same encoder, fine-tuned by the `Trainer` of `transformers`, which needs the package `accelerate`."""

import tempfile

import numpy as np
import torch
from transformers import (
    BertForQuestionAnswering,
    BertForTokenClassification,
    BertModel,
    BertPreTrainedModel,
    BertTokenizerFast,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.utils import logging

from course_lib.data import resolve
from course_lib.torch import mean_pool
from course_lib.torch.lora import LoRALinear, merge_lora

logging.set_verbosity_error()
logging.disable_progress_bar()


class Examples(torch.utils.data.Dataset):
    """What the Trainer reads: `dataset[i]` is one example, what stands at i in each array under its name."""

    def __init__(self, **columns):
        self.columns = columns

    def __len__(self):
        return len(self.columns["input_ids"])

    def __getitem__(self, i):
        return {name: column[i].tolist() for name, column in self.columns.items()}


class MeanClassifier(BertPreTrainedModel):
    """Their BERT with our classifier: a linear layer on the mean of the real tokens' vectors."""

    def __init__(self, config):
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.dropout = torch.nn.Dropout(config.hidden_dropout_prob)
        self.classifier = torch.nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(self, input_ids, attention_mask, labels=None, token_type_ids=None):
        """Their names of the arguments: the Trainer passes what a batch holds by name."""
        hidden = self.bert(input_ids, attention_mask=attention_mask).last_hidden_state  # (B, T, d_model)
        logits = self.classifier(self.dropout(mean_pool(hidden, attention_mask.bool())))
        loss = None if labels is None else torch.nn.functional.cross_entropy(logits.float(), labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


def trained(model, examples, collate, scratch, epochs, lr, seed, batch_size=32, bf16=True) -> Trainer:
    """The Trainer of a model after its training, with what the course's loops have too: warm-up, decay, clipping."""
    settings = TrainingArguments(
        scratch,
        per_device_train_batch_size=batch_size,
        per_device_eval_batch_size=64,
        num_train_epochs=epochs,
        learning_rate=lr,
        warmup_steps=0.1,  # below 1, a share of all updates
        weight_decay=0.01,
        train_sampling_strategy="group_by_length",
        bf16=bf16,
        use_cpu=True,
        seed=seed,
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(model, settings, train_dataset=examples, data_collator=collate)
    trainer.remove_callback(PrinterCallback)  # the losses are kept in its state, and need not be seen
    trainer.train()
    return trainer


def fitted(run, sequences, labels, held_out):
    """Train on sequences of ids and their labels; the logits of each set of held-out sequences, float32 (N, 2)."""
    folder = resolve("minilm-l6")
    torch.manual_seed(run.seed)
    model = MeanClassifier.from_pretrained(folder)
    collate = DataCollatorWithPadding(BertTokenizerFast.from_pretrained(folder))
    examples, bf16 = Examples(input_ids=sequences, labels=np.asarray(labels)), run.precision == "bfloat16"
    with tempfile.TemporaryDirectory() as scratch:
        trainer = trained(model, examples, collate, scratch, run.epochs, run.lr, run.seed, bf16=bf16)
        trainer.args.train_sampling_strategy = "random"  # else `predict` groups by length too: its rows are in disorder
        found = []
        for rows in held_out:
            order = np.argsort([len(ids) for ids in rows], kind="stable")  # little padding
            unseen = Examples(input_ids=[rows[i] for i in order], labels=np.zeros(len(rows), int))
            logits = trainer.predict(unseen).predictions
            back = np.empty_like(logits, dtype=np.float32)
            back[order] = logits
            found.append(back)
        return found


def with_lora(task, folder, rank, alpha, examples, lr, seed, n_tags=None):
    """Write a model of `names` or `answers` into a folder, trained for one pass; how many weights learned, and losses.

    Their encoder stays frozen and has no dropout, as in the course's own run. Beside the four matrices of each of its
    attentions is the course's LoRA, which is merged before the model is written.
    """
    weights = resolve("minilm-l6")
    torch.manual_seed(seed)
    kind, head, collator, sizes = {
        "names": (BertForTokenClassification, "classifier", DataCollatorForTokenClassification, {"num_labels": n_tags}),
        "answers": (BertForQuestionAnswering, "qa_outputs", DataCollatorWithPadding, {}),
    }[task]
    model = kind.from_pretrained(
        weights,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation="eager",  # the gradient of their fused attention takes twice as long in bfloat16
        **sizes,
    )
    for name, weight in model.named_parameters():
        weight.requires_grad_(name.startswith(head))
    for layer in model.bert.encoder.layer:
        own, out = layer.attention.self, layer.attention.output
        own.query, own.key, own.value = (LoRALinear(part, rank, alpha) for part in (own.query, own.key, own.value))
        out.dense = LoRALinear(out.dense, rank, alpha)
    learn = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    collate = collator(BertTokenizerFast.from_pretrained(weights))
    trainer = trained(model, examples, collate, folder, 1, lr, seed, batch_size=8)
    merge_lora(model)
    model.save_pretrained(folder)
    return learn, [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
