//! Explanations of corpus tests in every format: snapshots of texts, structural checks of graphs and
//! pictures.

use litmus::corpus;
use model::{Budget, ExplainOptions, Explanation, Model, explain_outcome};

use super::layout::{Rectangle, lay_out};
use super::picture::{build_pictures, caption};
use super::{Explained, dot, html, svg, text};

struct ExplanationCase {
    test: litmus::Test,
    source: &'static str,
    file: String,
    explanation: Explanation,
}

impl ExplanationCase {
    fn from_corpus(id: &str, model: &str) -> ExplanationCase {
        let entry = corpus::tests().into_iter().find(|test| test.id == id).unwrap();
        ExplanationCase::new(entry.text, entry.path, &Model::shipped(model).unwrap().unwrap(), 2_000)
    }

    fn new(source: &'static str, file: String, model: &Model, mend_programs: usize) -> ExplanationCase {
        let test = litmus::parse(source, &file).unwrap();
        let options = ExplainOptions {
            verdict_budget: Budget::UNLIMITED,
            search_budget: Budget::UNLIMITED,
            max_fix_programs: mend_programs,
            find_forbidding_fix: mend_programs > 0,
            ..ExplainOptions::default()
        };
        let explanation = explain_outcome(&test, model, &options).unwrap();
        ExplanationCase { test, source, file, explanation }
    }

    fn explained(&self) -> Explained<'_> {
        Explained { test: &self.test, source: self.source, file: &self.file, explanation: &self.explanation }
    }
}

/// Line numbers of models change with their comments.
fn mask_model_lines(text: &str) -> String {
    let mut parts = text.split(".cat:");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown += ".cat:…";
        shown += part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    shown
}

#[test]
fn texts() {
    for (id, model) in [
        ("guard/MP+rel-acq.guard", "vulkan"),
        ("sb/SB+rlx-rlx", "vulkan"),
        ("sb/SB+rlx-rlx", "sc"),
        ("mp/MP+plain", "vulkan"),
        ("mp/MP+rlx-rlx", "vulkan"),
        ("avvis/MP+rel-acq.noav", "vulkan"),
        ("coherence/CoRR+rlx", "vulkan"),
        ("rmw/RMW+add-add", "vulkan"),
        ("barrier/MP+cbar", "vulkan"),
        ("2+2w/2+2W+rlx-rlx", "vulkan"),
        ("guard/MP+rel-acq.guard", "dartagnan"),
    ] {
        let case = ExplanationCase::from_corpus(id, model);
        let (_, name) = id.rsplit_once('/').unwrap();
        let text = mask_model_lines(&text(case.explained()));
        insta::assert_snapshot!(format!("{name}@{model}"), text);
    }
}

/// Every test of at most four threads, with a short search for fixes.
fn small_corpus_cases() -> Vec<ExplanationCase> {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let tests = corpus::tests().into_iter().filter(|test| {
        ["mp/", "sb/", "coherence/", "rmw/", "isa2/", "wrc/", "iriw/", "barrier/", "2+2w/", "ssw/"]
            .iter()
            .any(|family| test.id.starts_with(family))
    });
    tests.map(|test| ExplanationCase::new(test.text, test.path, &model, 0)).collect()
}

#[test]
fn labels_do_not_overlap_events_or_labels() {
    let overlap = |a: Rectangle, b: Rectangle| {
        a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
    };
    let (mut labels, mut hidden) = (0, Vec::new());
    for case in small_corpus_cases() {
        for picture in build_pictures(case.explained()) {
            let lines = |event: usize| caption(picture.execution, event).to_vec();
            let layout = lay_out(&picture.columns, &picture.arrows, &lines);
            let rectangles: Vec<Rectangle> = layout.arrows.iter().map(|(_, label)| *label).collect();
            for (index, label) in rectangles.iter().enumerate() {
                labels += 1;
                let others = rectangles[..index].iter().chain(layout.boxes.iter().map(|(_, found)| found));
                if others.into_iter().any(|other| overlap(*label, *other)) {
                    hidden.push(format!("{}: {:?}", case.file, picture.arrows[index].label));
                }
                assert!(label.x >= 0.0 && label.y >= 0.0, "{}", case.file);
                assert!(label.x + label.width <= layout.width + 1.0, "{}", case.file);
                assert!(label.y + label.height <= layout.height + 1.0, "{}", case.file);
            }
        }
    }
    assert!(labels > 200, "{labels} labels");
    assert_eq!(hidden, Vec::<String>::new());
}

/// Asserts that elements nest, with only white space outside them.
fn assert_well_formed(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        assert!(!before.contains('>'), "a bare `>` in {before:?}");
        assert!(!before.split('&').skip(1).any(|entity| !entity.contains(';')), "a bare `&` in {before:?}");
        let (tag, next) = after.split_once('>').unwrap();
        let name = tag.split([' ', '\n']).next().unwrap();
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed));
        } else if !tag.ends_with('/') && !name.starts_with('!') && name != "meta" {
            open.push(name);
        }
        rest = next;
    }
    assert_eq!(open, Vec::<&str>::new());
    assert_eq!(rest.trim(), "");
}

#[test]
fn pictures_and_pages_are_well_formed() {
    for case in small_corpus_cases() {
        let picture = svg(case.explained());
        assert!(picture.starts_with("<svg "));
        assert_well_formed(&picture);
        let code = ("a < b".to_owned(), "P0.0 | <i>buffer_store & wait\n".to_owned());
        let page = html(case.explained(), &[code]);
        assert_well_formed(&page);
        assert!(page.contains(
            "<h2>Machine code on a &lt; b</h2>\n<pre tabindex=\"0\">P0.0 | &lt;i&gt;buffer_store &amp; wait"
        ));
    }
}

#[test]
fn special_characters_of_each_format_are_escaped() {
    let source = "VULKAN a<b>&\"c\\d\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 ;\nst.atom.dv.sc0 x, 1 ;\nexists (x >= 1 /\\ x < 2)";
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let case = ExplanationCase::new(source, "<i>.litmus".to_owned(), &model, 0);
    let page = html(case.explained(), &[]);
    assert_well_formed(&page);
    assert!(page.contains("a&lt;b&gt;&amp;&quot;c\\d"), "{page}");
    assert!(page.contains("&lt;i&gt;.litmus"));
    assert!(dot(case.explained()).contains(r#"a<b>&\"c\\d"#));
}

/// Checks the statements of a graph against the grammar of DOT, including strings.
fn assert_graph(text: &str) {
    let (mut depth, mut statements) = (0_i32, 0);
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => loop {
                match characters.next() {
                    Some('\\') => {
                        let escaped = characters.next();
                        assert!(matches!(escaped, Some('"' | '\\' | 'l' | 'n')), "{escaped:?} in {text}");
                    }
                    Some('"') => break,
                    Some(inside) => assert!(!inside.is_control(), "{inside:?} in a string"),
                    None => panic!("an open string in {text}"),
                }
            },
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ';' => statements += 1,
            c => assert!(c.is_alphanumeric() || " \n_=->,.".contains(c), "{c:?} outside a string of {text}"),
        }
        assert!(depth >= 0, "{text}");
    }
    assert_eq!(depth, 0, "{text}");
    assert!(statements > 4);
}

#[test]
fn graphs_follow_the_grammar_and_name_every_event() {
    for case in small_corpus_cases() {
        let graph = dot(case.explained());
        assert_graph(&graph);
        for picture in build_pictures(case.explained()) {
            for event in picture.columns.iter().flat_map(|column| &column.events) {
                assert!(graph.contains(&format!("e{event} [label=")), "{}", case.file);
            }
        }
    }
}
