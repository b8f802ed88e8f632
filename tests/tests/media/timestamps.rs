use weir_e2e::{Backend, clips};

use crate::{Row, run};

#[test]
fn clocks_may_wrap() {
    let (plain, reordered) = (clips::plain(), clips::reordered());
    let mut rows = vec![
        Row::new("unedited", plain, "").decodes(),
        Row::new("unedited", reordered, "").decodes(),
        Row::new("unedited", clips::sound(), "").decodes(),
        Row::new("unedited", clips::pictures(), "").decodes(),
    ];
    for bits in [24, 31, 32] {
        let before = (1_u64 << bits) - 5_017;
        let edits = format!("shift all +{before}; modulo all 2^{bits}");
        for clip in [plain, reordered, clips::sound(), clips::pictures()] {
            let wraps = if clip.tags.len() < 450 { 1..=1 } else { 2..=2 };
            rows.push(Row::new("TS-01", clip, &edits).repairs("wrap", wraps));
        }
    }
    run(Backend::Uring, &rows);
}
