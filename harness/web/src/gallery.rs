//! Collections of the gallery: tests of findings, of examples in specifications, and of reports to other projects.

use litmus::corpus;
use results::wire::{PlaygroundCollection, PlaygroundName};

/// Tests of the pages in `docs/findings`: a page, its title and a test of the corpus.
const FINDINGS: &[(&str, &str, &str)] = &[
    (
        "F1",
        "RADV: a workgroup's release does not wait, and a wider release is not cumulative",
        "barrier/ISA2+cbar-rel-acq.atomic",
    ),
    ("F2", "Mesa: a shader that only reads loses its acquire", "mp/MP+rel-acq"),
    ("F3", "LLVM for HSA: the hole of F1 on other targets", "hsa/ISA2+wg-agent-system"),
    ("F4", "RADV: atomics on GFX12 carry no scope", "rmw/RMW+addadd-addadd"),
    (
        "F5",
        "glslang: `devicecoherent` on a block of `buffer_reference` is dropped",
        "storage/MP+rel-acq.address",
    ),
    ("F6", "SwiftShader: atomic minimum and maximum miss other operations", "rmw/RMW+min-max"),
    (
        "F7",
        "lavapipe: fragment shaders read once where an acquire is between two reads",
        "mp/MP+early-read-rel-acq",
    ),
    ("F8", "Mesa 26: an image read is no longer made visible", "storage/MP+fence-fence.sc2-payload"),
    (
        "F10",
        "spirv-opt: two reads of a `NonWritable` buffer become one across an acquire",
        "lease/Lease+rel-acq",
    ),
];

/// The start of the origin of an example in a specification.
const SPECIFICATION_ORIGIN: &str = "HSA Platform System Architecture";

/// Returns the collections; tests without one are found by their family.
pub fn collections() -> Vec<PlaygroundCollection> {
    let name = |name: &str, description: String| PlaygroundName { name: name.to_owned(), description };
    let findings = FINDINGS.iter().map(|(page, title, id)| name(id, format!("{page}: {title}")));
    let (mut examples, mut reports) = (Vec::new(), Vec::new());
    for test in corpus::tests() {
        let header = test.text.split('{').next().unwrap_or_default();
        let Some(origin) = header.lines().find_map(|line| line.strip_prefix("origin:")) else { continue };
        let origin = origin.trim();
        let list = if origin.starts_with(SPECIFICATION_ORIGIN) { &mut examples } else { &mut reports };
        list.push(name(&test.id, origin.to_owned()));
    }
    examples.sort_by(|one, other| one.description.cmp(&other.description));
    let collection = |title: &str, tests| PlaygroundCollection { title: title.to_owned(), tests };
    vec![
        collection("Findings in drivers and compilers", findings.collect()),
        collection("Examples of the HSA specification", examples),
        collection("Bugs reported to other projects", reports),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Every page of a finding whose test is in the corpus is in the gallery, with that test.
    #[test]
    fn findings_agree_with_the_pages() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings");
        let ids: Vec<String> = corpus::tests().into_iter().map(|test| test.id).collect();
        let mut pages = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let is_page =
                name.starts_with('F') && path.extension().is_some_and(|extension| extension == "md");
            if !is_page {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            if !ids.iter().any(|id| text.contains(id.as_str())) {
                continue;
            }
            pages += 1;
            let page = name.split('-').next().unwrap();
            let (_, _, id) = FINDINGS.iter().find(|(known, ..)| *known == page).unwrap();
            assert!(text.contains(id), "{name} does not name {id}");
        }
        assert_eq!(pages, FINDINGS.len());
    }

    #[test]
    fn tests_of_collections_are_in_the_corpus() {
        let ids: Vec<String> = corpus::tests().into_iter().map(|test| test.id).collect();
        let collections = collections();
        let counts: Vec<usize> = collections.iter().map(|collection| collection.tests.len()).collect();
        assert_eq!(counts, [9, 17, 6]);
        for test in collections.iter().flat_map(|collection| &collection.tests) {
            assert!(ids.contains(&test.name), "{}", test.name);
        }
    }
}
