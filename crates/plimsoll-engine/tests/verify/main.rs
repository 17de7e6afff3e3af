//! Damage and who finds it: the verification of files at rest, page by page and deeply, and the
//! engine at work on what was damaged. What is sound is found sound.

#[expect(dead_code, reason = "each test program uses its part of the golden module")]
#[path = "../golden/mod.rs"]
mod golden;
#[path = "../support/seeds.rs"]
mod seeds;
#[path = "../support/mod.rs"]
mod support;

mod corruption;
mod damage;
mod deep_damage;
mod deep_damage_content;
mod deep_sound;
mod engine_leaves;
mod files;
mod foreign;
mod left_over;
mod lost;
mod needed;
mod patient;
mod small_files;
