//! Each `tests/cat_errors/*.cat` is refused with the messages in its snapshot.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at a surprise")]

use crate::vocabulary;

use miette::{GraphicalReportHandler, GraphicalTheme};
use model::cat::{self, CatErrors, ClassFamilies};
use std::fs;
use std::path::Path;

/// Longer messages are truncated, since fixtures for limits are long.
const SHOWN_LINES: usize = 160;

fn expect_refusal(path: &Path) -> CatErrors {
    let folder = path.parent().unwrap();
    let resolve = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let name = path.file_name().unwrap().to_str().unwrap();
    let model = match cat::parse_model(name, &fs::read_to_string(path).unwrap(), &resolve) {
        Ok(model) => model,
        Err(errors) => return errors,
    };
    match cat::compile(&model, &vocabulary::vulkan(), &ClassFamilies::from_classes([0, 1])) {
        Ok(_) => panic!("{name} compiles"),
        Err(errors) => errors,
    }
}

#[test]
fn refusals() {
    insta::glob!("cat_errors/*.cat", |path| {
        let errors = expect_refusal(path);
        assert!(!errors.errors.is_empty());
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(110);
        let mut text = String::new();
        handler.render_report(&mut text, &errors).unwrap();
        for error in &errors.errors {
            assert!(error.span.line > 0 && error.span.column > 0, "{error} has no place");
            assert!(!error.file_name().is_empty(), "{error} has no file");
        }
        let lines: Vec<&str> = text.lines().take(SHOWN_LINES).map(str::trim_end).collect();
        insta::with_settings!({ snapshot_path => "cat_errors", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(lines.join("\n"));
        });
    });
}
