//! Inputs of shaders: an input with an unknown name or the wrong size is an error.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Ran, vk_litmus};

fn shader(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders/given").join(name)
}

/// Returns all messages without line breaks.
fn unwrapped_messages(ran: &Ran) -> String {
    format!("{}{}", ran.stdout, ran.stderr).replace("\n  │ ", " ")
}

fn run_on_shader(command: &str, name: &str, flags: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let mut command_line = vk_litmus([command]);
    command_line.arg(shader(name)).args(flags).current_dir(folder.path());
    if command == "run" {
        command_line.args(["--device", "sim", "--instances", "200"]);
    }
    Ran::run(&mut command_line)
}

/// Shader, flags, a case, and the expected message.
const REFUSED: &[(&str, &[&str], &str, &str)] = &[
    (
        "kernel",
        &["--buffer", "9.9=zeros"],
        "",
        "a buffer for 9.9, which the kernel does not have (it has 0.0, 0.1)",
    ),
    ("kernel", &["--image", "0.0=4x4"], "", "an image for 0.0, which is a buffer"),
    ("kernel", &["--sampler", "0.0=nearest"], "", "a sampler for 0.0, which is a buffer"),
    ("kernel", &["--buffer", "0.1=zeros"], "", "a buffer for 0.1, which is an image"),
    ("kernel", &["--sampler", "0.1=nearest"], "", "a sampler for 0.1, which is an image"),
    ("kernel", &["--image", "0.1=0x0"], "", "expected an image"),
    (
        "kernel",
        &["--spec", "4=1"],
        "",
        "specialization constant 4, which the kernel does not have (it has 3)",
    ),
    (
        "kernel",
        &["--spec", "coutn=1"],
        "",
        "specialization constant `coutn`, which the kernel does not have (it has count)",
    ),
    ("kernel", &["--spec", "count=4294967296"], "", "`4294967296` for `count`; expected a 32-bit number"),
    ("push", &["--push", "count=4294967296"], "", "`4294967296` for `sizes.count`; expected a 32-bit number"),
    ("push", &["--push", "0=4294967296"], "", "not a 32-bit integer"),
    ("push", &["--push", "0=1,2"], "", "push constants up to byte 7, of a block of 4 bytes"),
    ("kernel", &["--push", "0=1"], "", "push constants, but the kernel has none"),
    ("kernel", &["--push", "count=1"], "", "a member `count`, which the kernel does not have (it has none)"),
    ("kernel", &["--bind", "a.b=c"], "", "an address at a.b, where the kernel has no variable"),
    ("kernel", &["--bind", "push@0=c"], "", "an address at push@0, where the kernel has no variable"),
    ("kernel", &["--buffer", "0.0=zeros:99999999999"], "", "more than 268435456 bytes"),
    ("kernel", &[], "subgroup_size = 0", "`subgroup_size`: a number of at least 1 expected"),
    ("kernel", &[], "grid = [0, 1, 1]", "a grid without workgroups"),
    ("kernel", &[], "[image.\"0.1\"]\nsize = [4, 0]", "`image`: a size expected"),
    ("kernel", &[], "[image.\"0.0\"]\nsize = [4, 4]", "an image for 0.0, which is a buffer"),
    ("kernel", &[], "[address.n]\nat = \"push@0\"", "an address at push@0, where the kernel has no variable"),
    (
        "kernel",
        &[],
        "[buffer.\"0.0\"]\nbytes = 16\nu32_at = [{ offset = 16, u32 = [7] }]",
        "numbers within its 16 bytes, not 4 bytes at offset 16, expected",
    ),
    (
        "kernel",
        &[],
        "[buffer.\"0.0\"]\nbytes = 4\nu32 = [7, 8]",
        "within its 4 bytes, not 8 bytes at offset 0,",
    ),
    ("empty-workgroup", &[], "", "a workgroup without invocations"),
    ("none", &[], "", "no entry point"),
];

#[test]
fn unknown_or_misfitting_inputs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let case = folder.path().join("case.toml");
    for (name, flags, text, words) in REFUSED {
        let mut flags = flags.to_vec();
        if !text.is_empty() {
            fs::write(&case, text).unwrap();
            flags.extend(["--case", case.to_str().unwrap()]);
        }
        for command in ["check", "race", "run"] {
            let ran = run_on_shader(command, &format!("{name}.spvasm"), &flags);
            assert_eq!(ran.code, 2, "{name} {flags:?} {text}: {ran:?}");
            assert!(unwrapped_messages(&ran).contains(words), "{command} {name} {flags:?} {text}: {ran:?}");
        }
    }
    for command in ["check", "race"] {
        let ran = run_on_shader(command, "empty-grid.spvasm", &[]);
        assert_eq!(ran.code, 2, "{ran:?}");
    }
    let ran = run_on_shader("lint", "none.spvasm", &[]);
    assert!(ran.code == 2 && ran.messages().contains("none.spvasm: the module has no entry"), "{ran:?}");
}

/// A case may have every input that a program binds, and buffers of default size.
#[test]
fn unused_inputs_of_cases_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let case = folder.path().join("case.toml");
    for text in [
        "[buffer.\"0.0\"]\nfill = \"iota\"\n[buffer.\"3.1\"]\nbytes = 4",
        "[buffer.\"0.0\"]\nu32_at = [{ offset = 65532, u32 = [7] }]\n[spec]\n9 = 1",
    ] {
        fs::write(&case, text).unwrap();
        let ran = run_on_shader("race", "kernel.spvasm", &["--case", case.to_str().unwrap(), "--grid", "1"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.messages().contains("which the kernel does not have"), "{ran:?}");
    }
}

/// A case and a model can only open files in their folder, and errors do not quote other files.
#[test]
fn case_files_cannot_read_files_outside_their_folder() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("case");
    fs::create_dir(&folder).unwrap();
    for secret in [root.path().join("secret"), folder.join("own")] {
        // As a model, this is an error that shows the line.
        fs::write(secret, "top-secret-words (").unwrap();
    }
    let case = folder.join("case.toml");
    for (file, flag, code) in
        [("own", None, 0), ("../secret", None, 2), ("../secret", Some("--allow-outside"), 0)]
    {
        fs::write(&case, format!("[buffer.\"0.0\"]\nfile = \"{file}\"\n")).unwrap();
        let flags: Vec<&str> =
            ["--case", case.to_str().unwrap(), "--grid", "1"].into_iter().chain(flag).collect();
        let ran = run_on_shader("race", "kernel.spvasm", &flags);
        assert_eq!(ran.code, code, "{file} {flag:?}: {ran:?}");
        assert_eq!(
            unwrapped_messages(&ran).contains("--allow-outside"),
            code == 2,
            "{file} {flag:?}: {ran:?}"
        );
    }
    let model = folder.join("model.cat");
    for (file, words) in
        [("own", "top-secret-words"), ("../secret", "no such file in the folder of the model")]
    {
        fs::write(&model, format!("\"model\"\ninclude \"{file}\"\n")).unwrap();
        let mut command = vk_litmus(["check", "mp/MP+rel-acq", "--model", model.to_str().unwrap()]);
        let ran = Ran::run(&mut command);
        assert!(ran.code == 2 && unwrapped_messages(&ran).contains(words), "{file}: {ran:?}");
    }
}

#[test]
fn recursion_and_variables_without_memory_are_refused() {
    for (name, words) in [("recursion", "recursion"), ("too-large", "larger than memory")] {
        let ran = run_on_shader("race", &format!("{name}.spvasm"), &["--grid", "32"]);
        assert!(ran.code == 2 && unwrapped_messages(&ran).contains(words), "{ran:?}");
    }
}

/// The array has nine elements, from a vector constant: six words after three others.
#[test]
fn constants_of_vectors_are_computed() {
    for command in ["check", "race"] {
        let ran = run_on_shader(command, "vectors.spvasm", &["--grid", "1"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let ran = run_on_shader(command, "vectors.spvasm", &["--spec", "0=1"]);
        assert!(ran.code == 1 && ran.stdout.contains("out-of-bounds"), "{ran:?}");
    }
}

/// Contents are not judged if a final value is a loaded float; the reason has the file.
#[test]
fn reasons_name_the_source_file() {
    let ran = run_on_shader("run", "float.spvasm", &[]);
    assert!(unwrapped_messages(&ran).contains("float.spvasm:34: cannot analyze"), "{ran:?}");
}
