// The player page of one stream. It is served at the stream's own path, `/live/name`, and takes all
// addresses from there; a query (a token) is passed on. `window.weir` shows its state to tests.
"use strict";

const MODES = {
  ll: { suffix: "/index.m3u8", begin: beginHls },
  ts: { suffix: ".m3u8", begin: beginHls },
  flv: { suffix: ".flv", begin: beginFlv },
};
const RETRY_FIRST_MS = 1000;
const RETRY_MOST_MS = 4000;
const FROZEN_MS = 8000; // playback that shows nothing new for so long is begun anew
const TICK_MS = 500;
const BITRATE_SPAN_S = 6;
const FLV_REPORT_MS = 600;

const path = location.pathname.replace(/\/+$/, "");
const name = decodeURIComponent(path.slice(1));
const element = (id) => document.getElementById(id);
const video = element("video");

const stats = {
  latency: null, // seconds behind the encoder (HLS) or the newest frame received (FLV)
  buffer: 0, // seconds
  bitrate: 0, // bits per second
  decoded: 0,
  dropped: 0,
  stalls: 0,
  restarts: 0,
  errors: 0,
  width: 0,
  height: 0,
  codecs: "",
};
const weir = { mode: "ll", state: "connecting", lastError: "", stats, setMode };
window.weir = weir;

// ---- Engines. `begin(url, on)` plays into the video and returns { stop, edge, latency }. --------

/** LL-HLS and HLS by hls.js; where Media Source Extensions are missing, by the browser itself. */
function beginHls(url, on) {
  if (!Hls.isSupported()) return beginNative(url, on);
  const hls = new Hls({
    lowLatencyMode: weir.mode === "ll",
    maxLiveSyncPlaybackRate: 1.1,
    backBufferLength: 20,
    enableWorker: false, // a worker made from a blob would need a weaker content security policy
  });
  let mediaErrors = 0;
  hls.on(Hls.Events.LEVEL_LOADED, (_, { details }) => details.live || on.ended());
  hls.on(Hls.Events.BUFFER_CODECS, (_, { video: v, audio: a, audiovideo: both }) =>
    on.codecs([v, a, both].map((track) => track && track.codec)));
  hls.on(Hls.Events.FRAG_LOADED, (_, { frag, part, payload }) =>
    on.bytes(payload ? payload.byteLength : 0, (part || frag).duration));
  hls.on(Hls.Events.ERROR, (_, { fatal, type, details, response }) => {
    if (!fatal) return;
    if (type === Hls.ErrorTypes.MEDIA_ERROR && mediaErrors++ < 2) {
      stats.errors += 1;
      hls.recoverMediaError();
      return;
    }
    on.failed(details, response ? response.code : 0);
  });
  hls.loadSource(url);
  hls.attachMedia(video);
  return {
    stop: () => hls.destroy(),
    edge: () => hls.liveSyncPosition,
    // The picture's wall-clock time tells it exactly, where the playlist has it and clocks agree.
    latency() {
      const behind = hls.playingDate ? (Date.now() - hls.playingDate.getTime()) / 1000 : 0;
      return behind > 0 && behind < 60 ? behind : hls.latency || null;
    },
  };
}

function beginNative(url, on) {
  const failed = () => on.failed("this browser cannot play the stream", 0);
  video.addEventListener("error", failed);
  video.src = url;
  return {
    stop() {
      video.removeEventListener("error", failed);
      video.removeAttribute("src");
      video.load();
    },
    edge: () => (video.seekable.length ? video.seekable.end(video.seekable.length - 1) : null),
    latency: () => null,
  };
}

/** HTTP-FLV by mpegts.js, kept near the newest frame by a slightly raised playback rate. */
function beginFlv(url, on) {
  if (!mpegts.isSupported()) {
    queueMicrotask(() => on.failed("this browser has no Media Source Extensions", 0));
    return { stop() {}, edge: () => null, latency: () => null };
  }
  mpegts.LoggingControl.enableAll = false;
  const player = mpegts.createPlayer({ type: "flv", isLive: true, url: new URL(url, location).href }, {
    enableStashBuffer: false,
    liveSync: true,
    liveSyncMaxLatency: 1.5,
    liveSyncTargetLatency: 0.7,
    liveSyncPlaybackRate: 1.1,
    autoCleanupSourceBuffer: true,
    statisticsInfoReportInterval: FLV_REPORT_MS,
  });
  player.on(mpegts.Events.MEDIA_INFO, ({ videoCodec, audioCodec }) => on.codecs([videoCodec, audioCodec]));
  player.on(mpegts.Events.STATISTICS_INFO, ({ speed }) => // KiB/s
    on.bytes(speed * 1024 * FLV_REPORT_MS / 1000, FLV_REPORT_MS / 1000));
  player.on(mpegts.Events.ERROR, (_type, details, info) => on.failed(details, info ? info.code : 0));
  player.on(mpegts.Events.LOADING_COMPLETE, () => on.ended());
  player.attachMediaElement(video);
  player.load();
  return {
    stop: () => player.destroy(),
    edge: () => (bufferEnd() === null ? null : bufferEnd() - 0.5),
    latency: () => (bufferEnd() === null ? null : bufferEnd() - video.currentTime),
  };
}

// ---- One attempt after the other until the page is left. ---------------------------------------

let engine = null;
let attempt = 0; // what an attempt that is over still reports is ignored
let ending = false;
let retryMs = RETRY_FIRST_MS;
let retryTimer = 0;
let seenPicture = false;
let progress = { at: 0, time: -1 };
let received = [];

function start() {
  stop();
  const mine = attempt;
  const guard = (call) => (...args) => mine === attempt && call(...args);
  seenPicture = false;
  ending = false;
  received = [];
  stats.codecs = "";
  progress = { at: performance.now(), time: -1 };
  if (weir.state !== "offline") setState("connecting");
  const { suffix, begin } = MODES[weir.mode];
  engine = begin(path + suffix + location.search, {
    bytes: guard((bytes, seconds) => received.push({ bytes, seconds })),
    codecs: guard((codecs) => (stats.codecs = videoFirst(codecs))),
    failed: guard(failed),
    ended: guard(ended),
  });
  play();
}

function stop() {
  clearTimeout(retryTimer);
  attempt += 1;
  if (engine) engine.stop();
  engine = null;
}

function failed(reason, code) {
  weir.lastError = code ? `${reason} (${code})` : `${reason}`;
  stats.errors += 1;
  retry(code === 404 ? "offline" : "reconnecting");
}

/** The stream is over. What is buffered plays to its end; an old recording is not begun again. */
function ended() {
  ending = true;
  if (!seenPicture) retry("offline");
}

function retry(state) {
  stop();
  setState(state);
  retryTimer = setTimeout(start, retryMs);
  retryMs = Math.min(retryMs * 1.5, RETRY_MOST_MS);
}

function play() {
  video.play().catch((error) => {
    // Sound before a gesture is refused: go on without, the sound button shows.
    if (error.name === "NotAllowedError" && !video.muted) {
      video.muted = true;
      video.play().catch(() => {});
    }
  });
}

function setMode(mode) {
  if (!(mode in MODES)) return;
  weir.mode = mode;
  stats.stalls = 0;
  retryMs = RETRY_FIRST_MS;
  for (const radio of document.querySelectorAll("input[name=mode]")) radio.checked = radio.value === mode;
  history.replaceState(null, "", `#${mode}`);
  start();
}

// ---- What is measured and shown. ---------------------------------------------------------------

function bufferEnd() {
  const { buffered } = video;
  return buffered.length ? buffered.end(buffered.length - 1) : null;
}

function videoFirst(codecs) {
  const names = codecs.filter(Boolean).join().split(",");
  const isAudio = (codec) => Number(/^(mp4a|mp3|opus|flac|[ae]c-3)/i.test(codec));
  return names.sort((a, b) => isAudio(a) - isAudio(b)).join(", ");
}

function measure() {
  const quality = video.getVideoPlaybackQuality();
  const end = bufferEnd();
  stats.decoded = quality.totalVideoFrames;
  stats.dropped = quality.droppedVideoFrames;
  stats.width = video.videoWidth;
  stats.height = video.videoHeight;
  stats.buffer = end === null ? 0 : Math.max(0, end - video.currentTime);
  stats.latency = engine && seenPicture ? engine.latency() : null;
  let seconds = received.reduce((sum, sample) => sum + sample.seconds, 0);
  while (received.length > 1 && seconds > BITRATE_SPAN_S) seconds -= received.shift().seconds;
  stats.bitrate = seconds ? received.reduce((sum, sample) => sum + sample.bytes, 0) * 8 / seconds : 0;
}

function show() {
  const text = {
    latency: stats.latency === null ? "–" : `${stats.latency.toFixed(2)} s`,
    buffer: `${stats.buffer.toFixed(2)} s`,
    bitrate: stats.bitrate >= 1e6 ? `${(stats.bitrate / 1e6).toFixed(2)} Mbit/s` : `${Math.round(stats.bitrate / 1e3)} kbit/s`,
    dropped: `${stats.dropped} of ${stats.decoded}`,
    stalls: `${stats.stalls}`,
    resolution: stats.width ? `${stats.width} × ${stats.height}` : "–",
    codecs: stats.codecs || "–",
  };
  for (const [id, value] of Object.entries(text)) element(id).textContent = value;
}

function tick() {
  const now = performance.now();
  if (video.currentTime !== progress.time) progress = { at: now, time: video.currentTime };
  measure();
  show();
  if (!engine || video.paused || now - progress.at < FROZEN_MS) return;
  stats.restarts += 1;
  weir.lastError = "no new picture for a while";
  retry("reconnecting");
}

const STATES = {
  connecting: ["Connecting", ""],
  live: ["Live", ""],
  paused: ["Paused", ""],
  reconnecting: ["Reconnecting", "The connection was lost. Trying again …"],
  offline: ["Offline", `${name} is not on air. This page starts by itself as soon as it is.`],
};

/** Touches the page only on a change, so that a screen reader says each state once. */
function setState(state) {
  if (weir.state === state && element("status").textContent === STATES[state][0]) return;
  weir.state = state;
  const [status, message] = STATES[state];
  element("status").dataset.state = state;
  element("status").textContent = status;
  element("message").textContent = message;
  element("message").hidden = !message;
}

// ---- The controls. -----------------------------------------------------------------------------

function goLive() {
  const edge = engine && engine.edge();
  if (edge > video.currentTime) video.currentTime = edge;
}

const actions = {
  play() {
    if (!video.paused) return video.pause();
    goLive();
    return play();
  },
  mute() {
    video.muted = !video.muted;
  },
  live() {
    goLive();
    play();
  },
  full() {
    if (document.fullscreenElement) return document.exitFullscreen();
    const stage = element("stage");
    // iPhones give full screen to the video only.
    return stage.requestFullscreen ? stage.requestFullscreen() : video.webkitEnterFullscreen();
  },
};
const KEYS = { " ": "play", k: "play", m: "mute", l: "live", f: "full" };

function listenToControls() {
  for (const id of Object.keys(actions)) element(id).addEventListener("click", actions[id]);
  element("unmute").addEventListener("click", actions.mute);
  document.addEventListener("keydown", (event) => {
    const action = KEYS[event.key.toLowerCase()];
    const typed = event.target.closest("button, input, summary, a");
    if (!action || event.ctrlKey || event.metaKey || event.altKey || (event.key === " " && typed)) return;
    event.preventDefault();
    actions[action]();
  });
  for (const radio of document.querySelectorAll("input[name=mode]")) {
    radio.addEventListener("change", () => setMode(radio.value));
  }
}

function listenToVideo() {
  video.addEventListener("playing", () => {
    seenPicture = true;
    retryMs = RETRY_FIRST_MS;
    setState("live");
  });
  video.addEventListener("waiting", () => {
    if (ending) return retry("offline");
    if (seenPicture && !video.seeking) stats.stalls += 1;
  });
  video.addEventListener("ended", () => retry("offline"));
  video.addEventListener("pause", () => {
    element("play").textContent = "Play";
    if (weir.state === "live") setState("paused");
  });
  video.addEventListener("play", () => (element("play").textContent = "Pause"));
  video.addEventListener("volumechange", () => {
    element("mute").textContent = video.muted ? "Unmute" : "Mute";
    element("unmute").hidden = !video.muted;
  });
}

function listAddresses() {
  const base = location.origin + path;
  const addresses = {
    "LL-HLS": `${base}/index.m3u8`,
    "HLS, TS": `${base}.m3u8`,
    "HTTP-FLV": `${base}.flv`,
    RTMP: `rtmp://${location.hostname}${path}`,
  };
  for (const [label, address] of Object.entries(addresses)) {
    const row = element("addresses").appendChild(document.createElement("li"));
    row.appendChild(document.createElement("span")).textContent = label;
    row.appendChild(document.createElement("code")).textContent = address;
    if (!navigator.clipboard) continue; // only pages from https or localhost may copy
    const copy = row.appendChild(document.createElement("button"));
    copy.type = "button";
    copy.textContent = "Copy";
    copy.setAttribute("aria-label", `Copy the ${label} address`);
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(address);
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    });
  }
}

element("name").textContent = name;
document.title = `${name} · Weir`;
listenToControls();
listenToVideo();
listAddresses();
setInterval(tick, TICK_MS);
setMode(location.hash.slice(1) in MODES ? location.hash.slice(1) : "ll");
