//! What encoders do to media, each case by its id: an edit of a good clip, published to the real
//! gateway as fast as it takes it, and checks on everything that comes out.

mod audio;
mod days;
mod ertmp;
mod flv;
mod metadata;
mod row;
mod slow_readers;
mod sparse;
mod timestamps;
mod video;

use row::{Row, run, same};
