//! Rebuilds the crate when a pattern is added or taken away.

fn main() {
    println!("cargo::rerun-if-changed=patterns");
}
