//! The library of the package: its dependencies, and the documentation of its public items.

use std::process::Command;

use crate::docs::root;

/// Returns the names of the crates in a build, without build and test dependencies.
fn dependencies(features: &[&str]) -> Vec<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["tree", "-p", "vk-litmus", "-e", "normal", "--prefix", "none", "--offline", "--locked"]);
    let ran = command.args(features).current_dir(root()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8(ran.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_library_has_no_command_line_among_its_dependencies() {
    let program = dependencies(&[]);
    let library = dependencies(&["--no-default-features"]);
    let only_of_the_program = [
        "clap",
        "clap_complete",
        "clap_mangen",
        "indicatif",
        "tracing-subscriber",
        "signal-hook",
        "lsp-server",
        "lsp",
    ];
    for name in only_of_the_program {
        assert!(program.iter().any(|known| known == name), "the program does not depend on {name}");
        assert!(!library.iter().any(|known| known == name), "the library depends on {name}");
    }
    // Only the program renders diagnostics.
    for name in ["owo-colors", "textwrap", "supports-color"] {
        assert!(!library.iter().any(|known| known == name), "the library depends on {name}");
    }
    assert!(library.len() < program.len());
}

#[test]
fn each_public_function_of_the_library_has_an_example() {
    let mut count = 0;
    let folders = ["harness/cli/src/library", "harness/cli/src/library/shader_test"];
    let entries = folders.into_iter().flat_map(|folder| std::fs::read_dir(root().join(folder)).unwrap());
    for path in entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        // The public interface excludes this module.
        if path.ends_with("program.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("pub fn ")) {
            let mut above = lines[..at].iter().rev().take_while(|line| line.starts_with(['/', '#']));
            // The example of a builder calls several of its functions.
            let name = line.trim_start_matches("pub fn ").split(['<', '(']).next().unwrap();
            let in_example =
                || lines.iter().any(|line| line.starts_with("///") && line.contains(&format!("{name}(")));
            let has_example = above.any(|line| line.starts_with("/// ```")) || in_example();
            assert!(has_example, "{}: {line}", path.display());
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

#[test]
fn the_page_names_each_type_of_the_surface() {
    let page = include_str!("../../../../docs/howto/library.md");
    let surface = include_str!("../../src/lib.rs").split_once("mod library;").unwrap().1;
    let named = surface.lines().filter(|line| !line.contains("program"));
    let names: Vec<&str> = named
        .filter_map(|line| line.strip_prefix("pub use library::"))
        .flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_').skip(1))
        .filter(|name| !name.is_empty())
        .collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}")), "docs/howto/library.md does not name `{name}`");
    }
}
