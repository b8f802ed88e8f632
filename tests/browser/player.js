// Runs in the browser: plays the stream that the query names and counts what a viewer would notice.
"use strict";

const query = new URLSearchParams(location.search);
const video = document.querySelector("video");
const observed = { errors: [], waits: 0, latency: () => null, native: null };
window.observed = observed;

const players = {
  async "hlsjs-ll"(url) {
    await script("/modules/hls.js/dist/hls.js");
    hlsJs(url, true);
  },
  async "hlsjs-ts"(url) {
    await script("/modules/hls.js/dist/hls.js");
    hlsJs(url, false);
  },
  async native(url) {
    video.src = url;
    await video.play();
  },
  async mpegts(url) {
    await script("/modules/mpegts.js/dist/mpegts.js");
    mpegts.LoggingControl.enableAll = false;
    const player = mpegts.createPlayer({ type: "flv", isLive: true, url }, { enableStashBuffer: false });
    player.on(mpegts.Events.ERROR, (type, details) => observed.errors.push(`${type}: ${details}`));
    player.attachMediaElement(video);
    player.load();
    observed.latency = () => video.buffered.length && video.buffered.end(0) - video.currentTime;
    await player.play();
  },
  async shaka(url) {
    await script("/modules/shaka-player/dist/shaka-player.compiled.js");
    shaka.polyfill.installAll();
    const player = new shaka.Player();
    await player.attach(video);
    player.addEventListener("error", ({ detail }) => observed.errors.push(`shaka ${detail.code}`));
    // Whole segments: with parts, a second or less behind the live edge, it now and then leaves
    // pictures out although it was given every part in order.
    player.configure({ streaming: { lowLatencyMode: false } });
    await player.load(url);
    observed.latency = () => player.getStats().liveLatency;
    await video.play();
  },
};

function hlsJs(url, lowLatencyMode) {
  const hls = new Hls({ lowLatencyMode });
  hls.on(Hls.Events.ERROR, (_, data) => {
    // hls.js also tells of a buffer that runs dry; such waits are counted by the video's own event.
    if (data.details !== "bufferStalledError") observed.errors.push(`${data.type}: ${data.details}`);
  });
  hls.loadSource(url);
  hls.attachMedia(video);
  observed.latency = () => hls.latency;
  video.play().catch((error) => observed.errors.push(error.message));
}

function script(path) {
  return new Promise((resolve, reject) => {
    const tag = document.createElement("script");
    tag.src = path;
    tag.onload = resolve;
    tag.onerror = () => reject(new Error(`${path} did not load`));
    document.head.append(tag);
  });
}

let playing = false;
video.addEventListener("playing", () => (playing = true));
video.addEventListener("waiting", () => {
  if (playing && !video.seeking) observed.waits += 1;
});
video.addEventListener("error", () => observed.errors.push(video.error.message));
players[query.get("mode")](query.get("url")).catch((error) => observed.errors.push(String(error)));
