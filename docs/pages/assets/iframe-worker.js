/* The search runs in a worker, which browsers refuse to a page that was opened from a folder.
   There the same script runs in a hidden frame and looks like a worker from outside. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      const script = inside.document.createElement("script")
      this.ready = new Promise((done) => { script.onload = done })
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      script.src = new URL(url, location.href).href
      inside.document.body.appendChild(script)
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() { this.frame.remove() }
  }
}
