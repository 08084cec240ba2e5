//! Rebuilds the crate if files are added to or removed from the embedded folders.

fn main() {
    for folder in ["corpus", "model-only", "progress", "suites"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
