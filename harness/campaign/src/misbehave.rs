//! A hook for this tool's own tests: the worker of a test behaves as a broken driver would.
//!
//! `--misbehave HOW:ID` makes the parent give the worker of test ID a marked device selector; the worker acts on the mark
//! when it opens the device. `crash` aborts the process, `hang` never returns, `lost` says that the device was lost. `null:*`
//! takes devices that compile and execute nothing as if they executed.

use std::time::Duration;

use plan::DeviceError;

use crate::Failure;

/// Begins a marked selector. No device has such a name.
const MARK: &str = "misbehave:";

/// How a worker misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Crash,
    Hang,
    Lost,
    Null,
}

const HOWS: [(&str, How); 4] =
    [("crash", How::Crash), ("hang", How::Hang), ("lost", How::Lost), ("null", How::Null)];

fn named(name: &str) -> Option<How> {
    HOWS.iter().find(|(known, _)| *known == name).map(|(_, how)| *how)
}

/// Which tests misbehave, and how.
#[derive(Clone, Debug, Default)]
pub struct Misbehaviour {
    /// How, and the id of the test; `*` for every test.
    rules: Vec<(String, String)>,
}

impl Misbehaviour {
    /// Reads `HOW:ID` texts.
    ///
    /// # Errors
    /// When one is none.
    pub fn parse(texts: &[String]) -> Result<Misbehaviour, Failure> {
        let rules = texts
            .iter()
            .map(|text| match text.split_once(':') {
                Some((how, id)) if named(how).is_some() => Ok((how.to_owned(), id.to_owned())),
                _ => Err(Failure::input_message(format!("`--misbehave {text}`: expected HOW:ID"))),
            })
            .collect::<Result<_, _>>()?;
        Ok(Misbehaviour { rules })
    }

    /// The selector that the worker of a test gets.
    pub fn selector(&self, id: &str, selector: &str) -> String {
        match self.rules.iter().find(|(_, wanted)| wanted == id || wanted == "*") {
            Some((how, _)) if named(how) != Some(How::Null) => format!("{MARK}{how}"),
            Some(_) | None => selector.to_owned(),
        }
    }

    /// Whether devices that execute nothing are taken all the same.
    pub fn takes_null_devices(&self) -> bool {
        self.rules.iter().any(|(how, _)| named(how) == Some(How::Null))
    }
}

/// Acts on the mark of a selector.
///
/// # Errors
/// The device is lost, where that is the mark.
pub fn act(selector: &str) -> Result<(), DeviceError> {
    match selector.strip_prefix(MARK).and_then(named) {
        None | Some(How::Null) => Ok(()),
        Some(How::Crash) => std::process::abort(),
        Some(How::Hang) => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        Some(How::Lost) => Err(DeviceError::DeviceLost("a test of this tool")),
    }
}
