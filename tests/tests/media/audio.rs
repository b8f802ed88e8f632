//! Sound that is late with its configuration, has another form, or never comes.

use weir_e2e::{Backend, clips};

use crate::{Row, run};

#[test]
fn sound_comes_out_or_is_left_out() {
    let plain = clips::plain();
    let rows = [
        // An empty header before the real one; headers of ADTS, with and without another one.
        Row::new("AU-01", plain, "insert audio.header#0 audio af00").decodes(),
        Row::new("AU-01", clips::sound(), "insert audio.header#0 audio af00").decodes(),
        Row::new("AU-01", plain, "adts audio.frame").decodes(),
        Row::new("AU-01", plain, "adts audio.frame; drop audio.header").decodes(),
        Row::new("AU-01", clips::sound(), "adts audio.frame; drop audio.header").decodes(),
        // Frames that nothing tells how to decode do not hold up the pictures.
        Row::new("AU-01", plain, "drop audio.header").tracks("v").decodes(),
        // Tracks that are announced and never come.
        Row::new("AU-04", plain, "drop audio.frame").tracks("v").decodes(),
        Row::new("AU-04", plain, "drop video.frame").tracks("a").decodes(),
        Row::new("AU-04", clips::pictures(), "").decodes(),
        // Codecs that Weir does not know.
        Row::new("AU-07", plain, "codec audio 11").tracks("v").decodes(),
        Row::new("AU-07", plain, "codec audio 7").tracks("v").decodes(),
        Row::new("AU-08", clips::sound(), "").decodes(),
    ];
    run(Backend::Uring, &rows);
}
