//! Litmus tests.

use campaign::inputs;
use campaign::source::{LoadedTest, SourceOrigin, TestSource};
use litmus::corpus;

use super::error::Error;

/// A parsed litmus test with its text.
///
/// The syntaxes are those of `docs/reference/litmus.md`: this project's, `.test` files of Khronos' Alloy model,
/// and HSA's dialect.
///
/// ```
/// use vk_litmus::LitmusTest;
///
/// let text = "VULKAN store\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 ;\nst.atom.dv.sc0 x, 1 ;\nexists (x == 1)";
/// let test = LitmusTest::parse(text)?;
/// assert_eq!(test.name(), "store");
/// assert_eq!(LitmusTest::parse(&test.to_text())?.to_text(), test.to_text());
/// assert!(LitmusTest::parse_named("VULKAN", "mp.litmus").is_err_and(|error| error.file() == "mp.litmus"));
///
/// assert!(LitmusTest::shipped_ids().any(|id| id == "sb/SB+rlx-rlx"));
/// let tests: Vec<LitmusTest> = LitmusTest::find("mp/MP+rel-*")?.into_iter().collect::<Result<_, _>>()?;
/// assert!(tests.iter().any(|test| test.id() == "mp/MP+rel-acq"));
/// # Ok::<(), vk_litmus::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LitmusTest {
    pub(super) loaded: LoadedTest,
}

impl LitmusTest {
    /// Parses a test; errors name the text `test.litmus`.
    ///
    /// # Errors
    /// Every mistake in the text, with its line and column.
    pub fn parse(text: &str) -> Result<LitmusTest, Error> {
        LitmusTest::parse_named(text, "test.litmus")
    }

    /// Parses a test; errors and answers name the text `file`.
    ///
    /// # Errors
    /// Every mistake in the text, with its line and column.
    pub fn parse_named(text: &str, file: &str) -> Result<LitmusTest, Error> {
        let test = litmus::parse(text, file)?;
        let source = TestSource {
            id: test.name.clone(),
            file: file.to_owned(),
            argument: file.to_owned(),
            variant: String::new(),
            origin: SourceOrigin::StandardInput,
            text: Ok(text.to_owned()),
        };
        Ok(LitmusTest { loaded: LoadedTest { source, text: text.to_owned(), test } })
    }

    /// Returns the tests that an argument of the program selects: a file, the tests below a folder, or an id
    /// or a glob of shipped tests. Each result may be an error, for example for an unknown name.
    ///
    /// # Errors
    /// If several tests cannot get distinct ids.
    pub fn find(argument: &str) -> Result<Vec<Result<LitmusTest, Error>>, Error> {
        let sources = inputs::collect(&[argument.to_owned()], None, None, || Ok(Vec::new()));
        let sources = sources.map_err(|failure| Error::for_file(argument, failure))?;
        Ok(sources.into_iter().map(LitmusTest::load).collect())
    }

    /// Returns the ids of the shipped tests that suites choose from.
    pub fn shipped_ids() -> impl Iterator<Item = String> {
        corpus::tests().into_iter().map(|test| test.id)
    }

    /// Returns the name in its header.
    pub fn name(&self) -> &str {
        &self.loaded.test.name
    }

    /// Returns the id of its answers: the path without extension, or the name if only a text was given.
    pub fn id(&self) -> &str {
        &self.loaded.source.id
    }

    /// Prints the test in this project's syntax, with columns aligned.
    pub fn to_text(&self) -> String {
        litmus::print(&self.loaded.test)
    }

    /// Parses the test of a source.
    pub(super) fn load(source: TestSource) -> Result<LitmusTest, Error> {
        Ok(LitmusTest { loaded: source.load()? })
    }

    /// Returns a generated test with its text.
    pub(super) fn from_generated(test: litmus::Test) -> LitmusTest {
        let text = litmus::print(&test);
        let source = TestSource {
            id: test.name.clone(),
            file: format!("{}.litmus", test.name),
            argument: test.name.clone(),
            variant: String::new(),
            origin: SourceOrigin::StandardInput,
            text: Ok(text.clone()),
        };
        LitmusTest { loaded: LoadedTest { source, text, test } }
    }
}
