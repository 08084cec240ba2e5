//! The output of compilers in the documents is current.
//!
//! A block marked `sh on=compilers` needs the folder of `ci/compilers`, which an environment variable names;
//! `on=compilers/PATH` also needs a file in it, such as a driver built by `ci/mesa-patch`. The following
//! block marked `text output` is the complete output. `VK_LITMUS_BLESS=1` regenerates the blocks, for example
//! after the suite has grown.

use std::path::Path;
use std::process::Command;

use crate::common::{Ran, binary};
use crate::docs::{Block, blocks, root};

/// Compares the blocks of a document with the output of their commands, and returns the number of blocks.
fn compare_blocks(document: &str) -> usize {
    let folder = std::env::var_os("VK_LITMUS_COMPILERS").filter(|folder| !folder.is_empty());
    let path = root().join("docs").join(document);
    let text = std::fs::read_to_string(&path).unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(binary(), directory.path().join("vk-litmus")).unwrap();
    let programs = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
    let blocks = blocks(&text);
    let mut printed: Vec<(&Block, String)> = Vec::new();
    let mut held = 0;
    for pair in blocks.windows(2) {
        let [command_block, output_block] = pair else { continue };
        let Some(needed) = command_block.option("on").and_then(|on| on.strip_prefix("compilers")) else {
            continue;
        };
        held += 1;
        let line = format!("docs/{document}:{}", command_block.line);
        assert!(output_block.words == ["text", "output"], "{line}: nothing says what it prints");
        let there = folder
            .as_ref()
            .is_some_and(|folder| Path::new(folder).join(needed.trim_start_matches('/')).exists());
        if !there {
            println!(
                "1 skipped: {line}: VK_LITMUS_COMPILERS names no folder with what `compilers{needed}` means"
            );
            continue;
        }
        let mut command = Command::new("bash");
        command
            .args(["-uo", "pipefail", "-c", &command_block.text])
            .current_dir(directory.path())
            .env("PATH", &programs);
        let ran = Ran::run(command.env("NO_COLOR", "1"));
        let exit = command_block.option("exit").map_or(0, |code| code.parse().unwrap());
        assert_eq!(ran.code, exit, "{line}:\n{}\n{}", ran.stdout, ran.stderr);
        printed.push((output_block, ran.stdout));
    }
    let mut current: Vec<&str> = text.lines().collect();
    // In reverse order, so that a replacement does not move the other blocks.
    for (output_block, stdout) in printed.iter().rev() {
        let after = output_block.line + output_block.text.lines().count();
        current.splice(output_block.line..after, stdout.lines().map(str::trim_end));
    }
    let current = current.join("\n") + "\n";
    if current != text && std::env::var_os("VK_LITMUS_BLESS").is_some() {
        std::fs::write(&path, current).unwrap();
        return held;
    }
    let differs = current.lines().zip(text.lines()).find(|(now, then)| now != then);
    assert!(
        current == text,
        "docs/{document} is not current: run the test with VK_LITMUS_BLESS=1: {differs:?}\n{current}"
    );
    held
}

#[test]
fn of_orders_and_the_explorer() {
    assert_eq!(compare_blocks("dev/compiler-figures.md"), 4);
}

#[test]
fn of_differences() {
    assert!(compare_blocks("findings/differences.md") > 0);
}

#[test]
fn of_a_patch() {
    assert!(compare_blocks("findings/F2-consumer-acquire.md") > 0);
}

#[test]
fn of_mesh_shaders() {
    assert!(compare_blocks("findings/F1-workgroup-release.md") > 0);
}
