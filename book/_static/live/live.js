/* The course's models in the reader's page: no server, no network, no account.

   A module is one file that calls `live.define(name, make)`; `make(use)` returns what the module offers, and `use(other)`
   is what another one offers. Plain scripts and not ES modules, which browsers refuse to load from the file system. For
   the same reason the worker, in which the models compute, is made of the text of these functions: a page that was opened
   as a file may neither start a worker from a file nor read one.

   `live.ask(checkpoint, task, details)` is all that a figure needs. Its first call loads the modules, the weights and the
   worker; a page that nobody touches loads nothing of it. */

var live = (() => {
  function makeRegistry() {
    const makers = new Map(); // name -> the function that makes the module
    const made = new Map(); // name -> what it offers
    const use = (name) => {
      if (!makers.has(name)) throw new Error(`there is no module ${name}`);
      if (!made.has(name)) made.set(name, makers.get(name)(use));
      return made.get(name);
    };
    return { makers, use, define: (name, make) => makers.set(name, make) };
  }

  const MODULES = [
    "tensors", "weights", "layers", "attention", "encoder", "decoder", "transformer", "bert",
    "unicode", "bpe", "wordpiece", "search", "translator", "worker",
  ]; // prettier-ignore
  const registry = makeRegistry();
  const folder = new URL(".", document.currentScript.src).href;
  const loading = new Map(); // address -> the promise of a script that is being loaded, or was
  const arrived = new Map(); // name of a checkpoint -> {header, bytes}, until the worker has it
  const opened = new Map(); // name of a checkpoint -> the promise that the worker has it
  const waiting = new Map(); // number of a question -> {resolve, reject}
  let worker = null;
  let asked = 0;

  /** Load a script once. A failure is forgotten, so that the reader can try again. */
  function load(path) {
    if (!loading.has(path)) {
      const done = new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = folder + path;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`the file ${path} could not be loaded`));
        document.head.append(script);
      });
      done.catch(() => loading.delete(path));
      loading.set(path, done);
    }
    return loading.get(path);
  }

  /** All that the models consist of, as the text of one script. */
  function workerSource() {
    const modules = MODULES.map((name) => `live.define("${name}", ${registry.makers.get(name)});`);
    return [`const live = (${makeRegistry})();`, ...modules, 'live.use("worker");'].join("\n");
  }

  async function startWorker() {
    await Promise.all(MODULES.map((name) => load(`${name}.js`)));
    const address = URL.createObjectURL(new Blob([workerSource()], { type: "text/javascript" }));
    worker = new Worker(address);
    worker.onmessage = ({ data }) => {
      const { resolve, reject } = waiting.get(data.number);
      waiting.delete(data.number);
      if (data.error) reject(Object.assign(new Error(data.error.message), data.error));
      else resolve(data.answer);
    };
    worker.onerror = (event) => {
      for (const { reject } of waiting.values()) reject(new Error(event.message));
      waiting.clear();
    };
  }

  function post(message) {
    const number = asked++;
    return new Promise((resolve, reject) => {
      waiting.set(number, { resolve, reject });
      worker.postMessage({ number, ...message });
    });
  }

  let started = null;

  /** The worker has the weights of this checkpoint, now or soon. */
  function open(checkpoint) {
    if (!opened.has(checkpoint)) {
      started ??= startWorker();
      const path = `weights/${checkpoint}.js`;
      const done = Promise.all([started, load(path)]).then(() => {
        // A browser calls a script loaded that it could not read to its end.
        if (!arrived.has(checkpoint)) throw new Error(`the file ${path} is damaged`);
        const message = { task: "open", checkpoint, ...arrived.get(checkpoint) };
        arrived.delete(checkpoint); // megabytes, of no further use to the page
        return post(message);
      });
      done.catch(() => {
        opened.delete(checkpoint);
        loading.delete(path);
        if (worker === null) started = null;
      });
      opened.set(checkpoint, done);
    }
    return opened.get(checkpoint);
  }

  /** What a checkpoint answers: a promise, rejected with an error whose `kind` is the reader's mistake, if it is one. */
  async function ask(checkpoint, task, details) {
    await open(checkpoint);
    return post({ task, checkpoint, details });
  }

  return {
    define: registry.define,
    use: registry.use,
    /** What a file of weights calls: its header, and its bytes as base64. */
    weights: (checkpoint, header, bytes) => arrived.set(checkpoint, { header, bytes }),
    load,
    open,
    ask,
    modules: MODULES,
  };
})();
