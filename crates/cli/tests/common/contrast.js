// Texts of the page whose contrast is less than 4.5, each once.
(() => {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const brush = canvas.getContext('2d', { willReadFrequently: true });
  const colour = (text) => {
    brush.clearRect(0, 0, 1, 1);
    brush.fillStyle = text;
    brush.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data;
    return { r, g, b, a: a / 255 };
  };
  const over = (top, below) => {
    const mix = (one, other) => one * top.a + other * (1 - top.a);
    return { r: mix(top.r, below.r), g: mix(top.g, below.g), b: mix(top.b, below.b), a: 1 };
  };
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.unshift(colour(getComputedStyle(at).backgroundColor));
    return layers.reduce((below, layer) => over(layer, below), { r: 255, g: 255, b: 255, a: 1 });
  };
  const light = ({ r, g, b }) => {
    const part = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const found = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !element.checkVisibility() || element.closest('noscript, .hidden, .skip')) continue;
    const style = getComputedStyle(element);
    const below = ground(element);
    const ink = over(colour(element instanceof SVGElement ? style.fill : style.color), below);
    const [high, low] = [light(ink), light(below)].sort((one, other) => other - one);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < 4.5) found.add(`${walk.currentNode.textContent.trim()}: ${contrast.toFixed(2)}`);
  }
  return [...found];
})()
