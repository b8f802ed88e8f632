use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

/// Which CPUs carry media.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cores {
    /// Every CPU that the process may use.
    All,
    /// The first so many of them.
    Count(usize),
    /// Exactly these.
    List(BTreeSet<usize>),
}

/// Linux's own ceiling for CPU numbers (`CPU_SETSIZE`), which pinning a thread shares.
const CPUS_MAX: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CoreChoiceError {
    #[error(
        "cores = {wanted}, but this process may use only {} CPUs ({}): set a smaller number, \
         or all",
        allowed.len(), list_text(allowed)
    )]
    TooMany { wanted: usize, allowed: BTreeSet<usize> },
    #[error(
        "cores names CPU {cpu}, but this process may use only CPUs {}: name some of those, or all",
        list_text(allowed)
    )]
    NotAllowed { cpu: usize, allowed: BTreeSet<usize> },
}

impl Cores {
    /// `all`, `4`, or a list as the kernel writes it: `0,2-3`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == "all" {
            return Some(Self::All);
        }
        if let Ok(count) = text.parse() {
            return (1..=CPUS_MAX).contains(&count).then_some(Self::Count(count));
        }
        parse_list(text).map(Self::List)
    }

    /// The CPUs to pin a thread on, out of the ones the process may use.
    ///
    /// # Errors
    /// When there are not so many, or a listed one is not among them.
    pub fn choose(&self, allowed: &BTreeSet<usize>) -> Result<Vec<usize>, CoreChoiceError> {
        let chosen: Vec<usize> = match self {
            Self::All => allowed.iter().copied().collect(),
            Self::Count(count) => allowed.iter().copied().take(*count).collect(),
            Self::List(cpus) => cpus.iter().copied().collect(),
        };
        match self {
            Self::Count(wanted) if chosen.len() < *wanted => {
                Err(CoreChoiceError::TooMany { wanted: *wanted, allowed: allowed.clone() })
            }
            _ => match chosen.iter().find(|cpu| !allowed.contains(cpu)) {
                Some(&cpu) => Err(CoreChoiceError::NotAllowed { cpu, allowed: allowed.clone() }),
                None => Ok(chosen),
            },
        }
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Count(count) => count.fmt(f),
            Self::List(cpus) if cpus.len() == 1 => {
                let text = list_text(cpus);
                write!(f, "{text}-{text}") // a bare number would be a count
            }
            Self::List(cpus) => f.write_str(&list_text(cpus)),
        }
    }
}

fn parse_list(text: &str) -> Option<BTreeSet<usize>> {
    let mut cpus = BTreeSet::new();
    for item in text.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let first: usize = first.trim().parse().ok()?;
        let last: usize = last.trim().parse().ok()?;
        if first > last || last >= CPUS_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

fn list_text(cpus: &BTreeSet<usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let text = |&(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    runs.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in ["all", "1", "4", "0,2-3", "2-2", "0-1023"] {
            let cores = Cores::parse(text).unwrap();
            assert_eq!(cores.to_string(), text);
        }
        assert_eq!(Cores::parse("0, 1,2"), Cores::parse("0-2"));
        for text in ["", "0", "3-1", "1025", "0,1024", "-1", "a", "0-", "1,,2", "99999999999999"] {
            assert_eq!(Cores::parse(text), None, "{text}");
        }
    }

    #[test]
    fn chosen_from_the_allowed_ones() {
        let allowed = BTreeSet::from([1, 2, 5]);
        let choose = |text: &str| Cores::parse(text).unwrap().choose(&allowed);
        assert_eq!(choose("all").unwrap(), [1, 2, 5]);
        assert_eq!(choose("2").unwrap(), [1, 2]);
        assert_eq!(choose("2,5").unwrap(), [2, 5]);
        let many = choose("4").unwrap_err().to_string();
        assert!(many.contains("cores = 4") && many.contains("3 CPUs (1-2,5)"), "{many}");
        let absent = choose("0-1").unwrap_err().to_string();
        assert!(absent.contains("names CPU 0"), "{absent}");
    }
}
