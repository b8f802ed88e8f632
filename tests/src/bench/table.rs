//! The figures, with a column for each backend.

use std::fmt;

use serde_json::{Value, json};

use crate::Backend;

/// All figures in the order in which they were first taken.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
    backend: Option<Backend>,
}

#[derive(Debug)]
struct Row {
    figure: String,
    unit: &'static str,
    how: &'static str,
    uring: Vec<f64>,
    epoll: Vec<f64>,
}

impl Table {
    /// What follows was measured with this backend.
    pub fn begin(&mut self, backend: Backend) {
        self.backend = Some(backend);
    }

    /// Adds one round's value.
    ///
    /// # Panics
    /// When it is no number: then it was not measured.
    pub fn add(&mut self, figure: &str, unit: &'static str, how: &'static str, value: f64) {
        assert!(value.is_finite(), "{figure} could not be measured");
        let known = self.rows.iter().position(|row| row.figure == figure);
        let index = known.unwrap_or(self.rows.len());
        if known.is_none() {
            let (uring, epoll) = Default::default();
            self.rows.push(Row { figure: figure.to_owned(), unit, how, uring, epoll });
        }
        let row = &mut self.rows[index];
        match self.backend {
            Some(Backend::Epoll) => row.epoll.push(value),
            _ => row.uring.push(value),
        }
    }

    /// Every row with its medians and every single value.
    #[must_use]
    pub fn json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "figure": row.figure, "unit": row.unit, "how": row.how,
                "uring": median(&row.uring), "epoll": median(&row.epoll),
                "uring_rounds": row.uring, "epoll_rounds": row.epoll,
            })
        };
        self.rows.iter().map(row).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|row| row.figure.len()).max().unwrap_or(0);
        let line = |f: &mut fmt::Formatter<'_>, cells: [&str; 5]| {
            let [figure, unit, uring, epoll, how] = cells;
            writeln!(f, "| {figure:width$} | {unit:9} | {uring:>8} | {epoll:>8} | {how}")
        };
        line(f, ["figure", "unit", "uring", "epoll", "how"])?;
        line(f, [&"-".repeat(width), "---------", "-------:", "-------:", "---"])?;
        for row in &self.rows {
            let (uring, epoll) = (cell(&row.uring), cell(&row.epoll));
            line(f, [&row.figure, row.unit, &uring, &epoll, row.how])?;
        }
        Ok(())
    }
}

fn cell(values: &[f64]) -> String {
    match median(values) {
        None => "-".to_owned(),
        Some(value) if value.abs() >= 100.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.3}"),
    }
}

/// `None` of nothing.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    percentile(values, 0.5)
}

/// The value that this share of all values does not exceed; `None` of nothing.
#[must_use]
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_there() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 0.99), Some(99.0));
        assert_eq!(median(&values), Some(50.0));
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_figure_has_one_row_with_both_backends() {
        let mut table = Table::default();
        for (backend, value) in [(Backend::Uring, 1.0), (Backend::Epoll, 12.0)] {
            table.begin(backend);
            table.add("in", "s", "so", value);
        }
        let text = table.to_string();
        assert!(text.contains("| in | s         |    1.000 |     12.0 | so"), "{text}");
        assert_eq!(table.json()[0]["epoll"], 12.0);
    }
}
