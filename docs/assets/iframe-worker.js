// Browsers start no worker from file://, and the search of this site runs in one. There it takes this
// class, by this name, which runs a worker's script in a hidden frame instead.
class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    this.frame.deliver = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    this.loaded = new Promise((resolve) => this.frame.addEventListener("load", resolve));
    this.frame.srcdoc = `<body><script>
      postMessage = (data) => frameElement.deliver(data);
      importScripts = async (...sources) => {
        for (const src of sources)
          await new Promise((resolve, reject) => {
            const script = document.createElement("script");
            Object.assign(script, { src, onload: resolve, onerror: reject });
            document.body.append(script);
          });
      };
    </script><script src="${url}"></script></body>`;
    document.body.append(this.frame);
  }

  async postMessage(data) {
    await this.loaded;
    this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
  }

  terminate() {
    this.frame.remove();
  }
}

window.IFrameWorker = IFrameWorker;
if (location.protocol === "file:") window.Worker = IFrameWorker;
