//! Rebuilds the crate if a pattern is added or removed.

fn main() {
    println!("cargo::rerun-if-changed=patterns");
}
