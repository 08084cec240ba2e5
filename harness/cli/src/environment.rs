//! The environment variables that the program reads.

/// Each variable with its effect, as the reference lists them.
pub const VARIABLES: &[(&str, &str)] = &[
    ("VK_LITMUS_DEVICE", "devices of a run without `--device`, separated by commas"),
    ("VK_LITMUS_SHARD", "the shard of a run without `--shard`, as `i/n`"),
    (
        "VK_LITMUS_MASK",
        "device features and limits that are hidden from every device, such as `shaderInt64` or `maxComputeWorkGroupInvocations=128`",
    ),
    ("VK_LITMUS_SWIFTSHADER_ICD", "the driver file of SwiftShader, if it is not in a known place"),
    ("VK_LITMUS_EXTRA_ICDS", "driver files in addition to those of the system, separated by colons"),
    ("VK_LITMUS_COMPILERS", "the folder of `ci/compilers`, with drivers for compile-only devices"),
    ("VK_LITMUS_WORKER", "set by the program for its workers: the mark of a worker and its descendants"),
    ("VK_LITMUS_COMPILE_ONLY", "set by the program for its workers: the chip of a compile-only device"),
    ("VK_LITMUS_COMPLETE", "set by shells that request completions"),
    (
        "VK_DRIVER_FILES",
        "read by the Vulkan loader: the driver files. If it is set and no device is found, the exit code is 3",
    ),
    ("VK_LITMUS_RECORD", "the folder to which the layer of `record` writes; `record` sets it"),
    ("VK_LITMUS_RECORD_KEEP", "cases per kind of dispatch; `record` sets it"),
    ("VK_LITMUS_RECORD_BYTES", "limit of recorded contents; `record` sets it"),
    ("VK_ICD_FILENAMES", "the older name of VK_DRIVER_FILES"),
    ("CI", "if it is set, no Vulkan device means exit code 3 instead of the simulated GPU"),
    (
        "DEQP_RUNNER_THREAD",
        "set by gtest-runner: the first verdicts of a test are reported again if it repeats the test",
    ),
    ("LP_NUM_THREADS", "threads of lavapipe; one per processor if unset"),
    ("RUST_LOG", "the log filter, instead of `--verbose`"),
    ("NO_COLOR", "if it is set, no output has colours"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Every variable of this program that the sources read is listed.
    #[test]
    fn every_variable_is_listed() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut missing = Vec::new();
        for folder in ["harness", "litmus/src", "shaders/src", "results/src"] {
            sources(&root.join(folder), &mut |text| {
                for word in text.split(|c: char| !c.is_ascii_uppercase() && c != '_') {
                    let is_ours = word.strip_prefix("VK_LITMUS_").is_some_and(|rest| !rest.is_empty());
                    // Variables of tests and maintenance are in CONTRIBUTING.md.
                    let is_listed = VARIABLES.iter().any(|(name, _)| *name == word);
                    if is_ours && !is_listed {
                        missing.push(word.to_owned());
                    }
                }
            });
        }
        missing.sort();
        missing.dedup();
        assert!(missing.is_empty(), "not in VARIABLES: {missing:?}");
    }

    /// Calls `read` with the text of every source file below a folder, except tests.
    fn sources(folder: &std::path::Path, read: &mut dyn FnMut(&str)) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && !["tests", "benches", "examples"].contains(&name) {
                sources(&path, read);
            } else if name.ends_with(".rs") && !["tests.rs", "environment.rs"].contains(&name) {
                let text = std::fs::read_to_string(&path).unwrap();
                read(text.split("#[cfg(test)]").next().unwrap());
            }
        }
    }
}
