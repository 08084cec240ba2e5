//! The ledger of real bugs: every row names an existing test, or notes that there is none.

use std::path::Path;

use campaign::inputs::match_embedded;

/// Returns the texts between pairs of backticks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_row_of_the_ledger_names_tests_or_a_gap() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs/dev/ledger.md")).unwrap();
    let (mut numbers, mut none, mut partly) = (Vec::new(), Vec::new(), Vec::new());
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, number, _, _, tests, _] = cells[..] else { continue };
        let Ok(number) = number.parse::<u32>() else { continue };
        numbers.push(number);
        let mut found = 0;
        for span in spans(tests) {
            if let Some((id, variant)) =
                span.split_once('@').or(Some((span, ""))).filter(|(id, _)| id.contains('/'))
            {
                assert_eq!(match_embedded(id).len(), 1, "row {number}: `{span}`");
                assert!(variant.parse::<runner::RunVariant>().is_ok(), "row {number}: `{span}`");
                found += 1;
            }
        }
        if let Some((_, pattern)) = tests.split_once("pattern `") {
            let name = pattern.split('`').next().unwrap();
            assert!(root.join("harness/cli/patterns").join(name).is_dir(), "row {number}: pattern `{name}`");
        }
        let has_no_test = tests.contains("none: ") && tests.starts_with("none");
        match (has_no_test, tests.contains("; none ")) {
            (true, _) => none.push(number),
            (false, true) => partly.push(number),
            (false, false) => {}
        }
        assert!(has_no_test || found > 0, "row {number} names no test");
    }
    assert_eq!(numbers, (1..=43).collect::<Vec<_>>());
    let format_list = |of: &[u32]| {
        let (last, rest) = of.split_last().unwrap();
        let rest = rest.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        format!("({rest} and {last})")
    };
    for part in [format_list(&none), format_list(&partly)] {
        assert!(text.lines().last().unwrap().contains(&part), "the last line does not say {part}");
    }
}
