//! Fault injection for the tests of this tool: the worker of a test acts like a broken driver.
//!
//! With `--misbehave HOW:ID`, the parent gives the worker of test ID a marked device selector, and the worker
//! acts when it opens the device. `crash` aborts the process, `hang` never returns, and `lost` reports a lost
//! device. `null:*` accepts devices that execute nothing.

use std::time::Duration;

use plan::DeviceError;

use crate::Failure;

/// The prefix of a marked selector, which is not the name of any device.
const MARK: &str = "misbehave:";

/// The kind of fault.
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

/// The injected faults of a run.
#[derive(Clone, Debug, Default)]
pub struct Misbehaviour {
    /// A kind of fault and the id of its test; `*` for every test.
    rules: Vec<(String, String)>,
}

impl Misbehaviour {
    /// Parses `HOW:ID` arguments.
    ///
    /// # Errors
    /// If one has another form.
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

    /// Returns the selector for the worker of a test.
    pub fn selector(&self, id: &str, selector: &str) -> String {
        match self.rules.iter().find(|(_, wanted)| wanted == id || wanted == "*") {
            Some((how, _)) if named(how) != Some(How::Null) => format!("{MARK}{how}"),
            Some(_) | None => selector.to_owned(),
        }
    }

    /// Returns true if devices that execute nothing are accepted.
    pub fn takes_null_devices(&self) -> bool {
        self.rules.iter().any(|(how, _)| named(how) == Some(How::Null))
    }
}

/// Performs the fault of a marked selector.
///
/// # Errors
/// [`DeviceError::DeviceLost`] if that is the fault.
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
