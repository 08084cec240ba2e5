//! Rebuilds the crate if files are added to or removed from the embedded folder.

fn main() {
    println!("cargo::rerun-if-changed=cat");
}
