"""The peer: the same encoder, fine-tuned by the `Trainer` of `transformers`, which needs the package `accelerate`."""

import tempfile

import numpy as np
import torch
from transformers import (
    BertModel,
    BertPreTrainedModel,
    BertTokenizerFast,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.utils import logging

from course_lib.data import resolve
from course_lib.torch import mean_pool

logging.set_verbosity_error()
logging.disable_progress_bar()


class Sentences(torch.utils.data.Dataset):
    """What the Trainer reads: `dataset[i]` is one sentence, a dictionary of its token ids and its label."""

    def __init__(self, sequences, labels):
        self.sequences, self.labels = sequences, labels

    def __len__(self):
        return len(self.sequences)

    def __getitem__(self, i):
        return {"input_ids": self.sequences[i].tolist(), "labels": int(self.labels[i])}


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


def fitted(run, sequences, labels, held_out):
    """Train on sequences of ids and their labels; the logits of each set of held-out sequences, float32 (N, 2)."""
    folder = resolve("minilm-l6")
    torch.manual_seed(run.seed)
    model = MeanClassifier.from_pretrained(folder)
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    with tempfile.TemporaryDirectory() as scratch:
        settings = TrainingArguments(
            scratch,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=64,
            num_train_epochs=run.epochs,
            learning_rate=run.lr,
            warmup_steps=0.1,  # below 1, a share of all updates
            weight_decay=0.01,
            train_sampling_strategy="group_by_length",
            bf16=run.precision == "bfloat16",
            use_cpu=True,
            seed=run.seed,
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        trainer = Trainer(
            model,
            settings,
            train_dataset=Sentences(sequences, labels),
            data_collator=DataCollatorWithPadding(tokenizer),
        )
        trainer.train()
        trainer.args.train_sampling_strategy = "random"  # else `predict` groups by length too: its rows are in disorder
        found = []
        for rows in held_out:
            order = np.argsort([len(ids) for ids in rows], kind="stable")  # little padding
            logits = trainer.predict(Sentences([rows[i] for i in order], np.zeros(len(rows), int))).predictions
            back = np.empty_like(logits, dtype=np.float32)
            back[order] = logits
            found.append(back)
        return found
