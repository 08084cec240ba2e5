//! The tests and suites that come with the crate, embedded in it.

use include_dir::{Dir, DirEntry, include_dir};

static CORPUS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpus");
static MODEL_ONLY: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/model-only");
static PROGRESS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/progress");
static SUITES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/suites");

/// An embedded file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedFile {
    /// Its identifier. For a test: the path within its folder without the extension (`sb/SB+rlx-rlx`). For a
    /// suite: its name (`quick`).
    pub id: String,
    /// Its path in the source tree of the crate (`corpus/sb/SB+rlx-rlx.litmus`).
    pub path: String,
    /// Its contents.
    pub text: &'static str,
}

/// Returns every test that suites choose from, in the order of ids.
pub fn tests() -> Vec<EmbeddedFile> {
    embedded_files(&CORPUS, "corpus", &["litmus", "test"])
}

/// Returns the tests that only models can judge, in the order of ids; their ids begin with `model-only/`.
pub fn model_only_tests() -> Vec<EmbeddedFile> {
    let mut found = embedded_files(&MODEL_ONLY, "model-only", &["litmus", "test"]);
    for entry in &mut found {
        entry.id.insert_str(0, "model-only/");
    }
    found
}

/// Returns the tests whose loops may run forever, in the order of ids; their ids begin with `progress/`.
///
/// No suite of ordinary runs selects them.
pub fn progress_tests() -> Vec<EmbeddedFile> {
    let mut found = embedded_files(&PROGRESS, "progress", &["litmus"]);
    for entry in &mut found {
        entry.id.insert_str(0, "progress/");
    }
    found
}

/// The name of the suite of forward progress.
pub const PROGRESS_SUITE: &str = "progress";

/// Returns the tests of the forward-progress suite, in its order.
pub fn progress_suite() -> Vec<EmbeddedFile> {
    let list = PROGRESS.get_file("suite.txt").and_then(|file| file.contents_utf8()).unwrap_or_default();
    let all = progress_tests();
    let ids = list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    ids.filter_map(|id| all.iter().find(|entry| entry.id == id).cloned()).collect()
}

/// Returns the suites, in the order of names; [`Suite::parse`](crate::suite::Suite::parse) reads them.
pub fn suites() -> Vec<EmbeddedFile> {
    embedded_files(&SUITES, "suites", &["txt"])
}

/// Returns the files below `dir` with one of `extensions`, in the order of ids.
fn embedded_files(dir: &'static Dir<'static>, folder: &str, extensions: &[&str]) -> Vec<EmbeddedFile> {
    let mut found = Vec::new();
    let mut folders = vec![dir];
    while let Some(next) = folders.pop() {
        for entry in next.entries() {
            match entry {
                DirEntry::Dir(inner) => folders.push(inner),
                DirEntry::File(file) => {
                    let path = file.path().to_string_lossy().replace('\\', "/");
                    let (Some((id, extension)), Some(text)) = (path.rsplit_once('.'), file.contents_utf8())
                    else {
                        continue;
                    };
                    if extensions.contains(&extension) {
                        found.push(EmbeddedFile {
                            id: id.to_owned(),
                            path: format!("{folder}/{path}"),
                            text,
                        });
                    }
                }
            }
        }
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}
