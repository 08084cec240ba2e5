//! Vertex and fragment shaders of users: answers of `check` and `race` for invocations outside workgroups.
//!
//! Comments of each shader have command lines after `$`, each with its exit code and parts of its output after `>`.

use std::path::Path;

use crate::common::{Ran, installed, vk_litmus};

#[test]
fn answers_and_refusals() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders/graphics");
    let mut commands = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        for case in text.split("// $ ").skip(1) {
            let mut lines = case.lines();
            let (command, rest) = lines.next().unwrap().split_once(' ').unwrap_or(("race", ""));
            let code = lines.next().and_then(|line| line.strip_prefix("// exit code ")).unwrap();
            let mut command_line = vk_litmus([command, &*name]);
            let ran = Ran::run(command_line.args(rest.split_whitespace()).current_dir(&folder));
            assert_eq!(ran.code.to_string(), code, "{name} {rest}: {ran:?}");
            let output = format!("{}{}", ran.stdout, ran.stderr);
            for part in lines.map_while(|line| line.strip_prefix("// > ")) {
                assert!(output.contains(part), "{name} {rest}: {part}\n{ran:?}");
            }
            commands += 1;
        }
    }
    assert_eq!(commands, 10);
}
