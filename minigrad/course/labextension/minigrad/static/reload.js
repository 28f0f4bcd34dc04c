// A JupyterLab extension, written by hand so that nothing has to be built. When another program
// changes a file whose tab has no changes of its own, the tab shows the new file, without asking.
// A button whose kernel is gone says how it comes back. Figures follow the theme.

const SECONDS = 1;

async function reloadChanged(app) {
  for (const widget of app.shell.widgets("main")) {
    const context = widget.context;
    if (!context?.isReady || context.model.dirty || !context.contentsModel) continue;
    try {
      const onDisk = await app.serviceManager.contents.get(context.path, {content: false});
      const isNewer = Date.parse(onDisk.last_modified) > Date.parse(context.contentsModel.last_modified);
      if (isNewer && !context.model.dirty && !context.isDisposed) await context.revert();
    } catch {
      // The file is gone, or the server does not answer: the tab stays as it is.
    }
  }
}

// What the widgets' package says of a widget that no kernel knows any more, and what we say. In a
// cell's own output it finds out; in an output beside the notebook it goes on loading.
const LOST = /^Error displaying widget|^Loading widget/;
const PATIENCE = 5; // looks
const looks = new WeakMap();
const ADVICE = "The kernel that answered here has ended. Run this cell again: Shift+Enter.";

function isLost(node) {
  looks.set(node, (looks.get(node) ?? 0) + 1);
  return looks.get(node) > PATIENCE;
}

function explainLost() {
  for (const node of document.querySelectorAll(".jp-OutputArea-output"))
    if (node.childElementCount === 0 && LOST.test(node.textContent) && isLost(node)) {
      node.textContent = ADVICE;
      node.style.color = "var(--jp-ui-font-color2)";
    }
}

// On a dark page a figure's paper becomes the page's and its ink light. Turning the hues by half
// brings them back. dark.css does the same for the book.
//
// In a window of 1280 pixels the smaller letters let 76 columns of an exercise fit beside a lesson,
// and a traceback's 75 into it. JupyterLab's own setting of their size goes before this.
const STYLE = `body[data-jp-theme-light="false"] .jp-RenderedImage img {
  filter: invert(0.93) hue-rotate(180deg);
}
@media (max-width: 1500px) { :root:root { --jp-code-font-size: 11.25px } }`;

async function activate(app) {
  const style = document.createElement("style");
  style.textContent = STYLE;
  document.head.append(style);
  await app.restored;
  for (;;) {
    await new Promise(resolve => setTimeout(resolve, 1000 * SECONDS));
    if (document.hidden) continue;
    explainLost();
    await reloadChanged(app);
  }
}

const plugin = {
  id: "minigrad:reload",
  description: "Reloads a document whose file another program has changed.",
  autoStart: true,
  activate: app => void activate(app),
};

window._JUPYTERLAB = window._JUPYTERLAB || {};
window._JUPYTERLAB.minigrad = {
  init: () => undefined,
  get: async () => () => ({__esModule: true, default: plugin}),
};
