//! Weir, the live-streaming gateway: cores, sockets, streams, HTTP, admin and metrics.
