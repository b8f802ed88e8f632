//! Writing nested boxes (ISO 14496-12 §4.2).

/// Appends boxes to a buffer; sizes are filled in when a box's body is done.
#[derive(Debug, Default)]
pub struct BoxWriter {
    out: Vec<u8>,
}

impl BoxWriter {
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes) }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// A plain box around what `body` writes.
    pub fn plain(&mut self, kind: &[u8; 4], body: impl FnOnce(&mut Self)) {
        let start = self.out.len();
        self.u32(0);
        self.bytes(kind);
        body(self);
        let len = u32::try_from(self.out.len().saturating_sub(start)).unwrap_or(u32::MAX);
        if let Some(size) = self.out.get_mut(start..).and_then(|head| head.first_chunk_mut::<4>()) {
            *size = len.to_be_bytes();
        }
    }

    /// A FullBox: version and flags come first (§4.2.2).
    pub fn full(&mut self, kind: &[u8; 4], version: u8, flags: u32, body: impl FnOnce(&mut Self)) {
        self.plain(kind, |w| {
            w.u32(u32::from(version) << 24 | flags & 0x00ff_ffff);
            body(w);
        });
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    pub fn i32(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub fn zeros(&mut self, count: usize) {
        self.out.resize(self.out.len().saturating_add(count), 0);
    }
}
