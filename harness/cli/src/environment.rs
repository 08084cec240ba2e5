//! The environment variables that the program reads.

/// Each variable with its effect, as the reference lists them.
pub const VARIABLES: &str = include_str!("environment/variables.tsv");

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
                    let is_listed = VARIABLES.lines().any(|row| row.split('\t').next() == Some(word));
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
