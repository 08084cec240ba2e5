//! Rebuilds the crate when a file is added to or taken from the embedded folder.

fn main() {
    println!("cargo::rerun-if-changed=cat");
}
