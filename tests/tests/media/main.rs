//! What encoders do to media, each case by its id: an edit of a good clip, published to the real
//! gateway as fast as it takes it, and checks on everything that comes out.

mod audio;
mod row;
mod timestamps;
mod video;

use row::{Row, run};
