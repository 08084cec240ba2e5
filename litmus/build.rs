//! Rebuilds the crate when a file is added to or taken from the embedded folders.

fn main() {
    for folder in ["corpus", "model-only", "progress", "suites"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
