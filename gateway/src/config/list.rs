use super::Config;
use super::error::{ConfigError, Place};
use super::file::{Row, RowField, in_file};
use super::value::Kind;

/// What the file can hold any number of, each as a table `[[name]]`.
pub(super) trait List: Sync {
    fn name(&self) -> &'static str;

    /// What it does, as one or two sentences.
    fn about(&self) -> &'static str;

    /// How many entries there can be.
    fn most(&self) -> usize;

    fn fields(&self) -> Vec<FieldAbout>;

    /// Checks an entry of the file and appends it.
    fn add(&self, config: &mut Config, row: &Row) -> Result<(), ConfigError>;

    /// What each entry sets, to be printed.
    fn settings(&self, config: &Config) -> Vec<Vec<FieldText>>;
}

/// A field as the reference shows it.
pub(super) struct FieldAbout {
    pub name: &'static str,
    pub about: &'static str,
    pub expected: String,
    /// `None` where it has to be given.
    pub default: Option<String>,
}

/// A field of an entry with the value that it has.
pub(super) struct FieldText {
    pub name: &'static str,
    pub text: String,
    /// In TOML it stands between quotes.
    pub quoted: bool,
    pub secret: bool,
}

/// A list whose entries are `T`s. Fields that are not given are those of the default `T`.
pub(super) struct ListOf<T: 'static> {
    pub name: &'static str,
    pub about: &'static str,
    pub most: usize,
    pub fields: &'static [Field<T>],
    /// Where the entries land.
    pub entries: fn(&mut Config) -> &mut Vec<T>,
    /// Rules between the fields of one entry; says which is broken.
    pub check: fn(&T) -> Result<(), String>,
}

pub(super) struct Field<T: 'static> {
    pub name: &'static str,
    pub kind: Kind<T>,
    pub required: bool,
    pub about: &'static str,
}

impl<T: Default + Clone> List for ListOf<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn most(&self) -> usize {
        self.most
    }

    fn fields(&self) -> Vec<FieldAbout> {
        let about = |field: &Field<T>| FieldAbout {
            name: field.name,
            about: field.about,
            expected: field.kind.expected(),
            default: (!field.required).then(|| field.kind.text(&T::default())),
        };
        self.fields.iter().map(about).collect()
    }

    fn add(&self, config: &mut Config, row: &Row) -> Result<(), ConfigError> {
        let mut entry = T::default();
        for given in &row.fields {
            self.set(&mut entry, given)?;
        }
        let absent = |field: &&Field<T>| {
            field.required && !row.fields.iter().any(|given| given.name == field.name)
        };
        if let Some(field) = self.fields.iter().find(absent) {
            return Err(ConfigError::Missing {
                place: row.place.clone(),
                list: self.name,
                field: field.name,
                expected: field.kind.expected(),
            });
        }
        let broken = |rule| self.broken(row.place.clone(), rule);
        (self.check)(&entry).map_err(broken)?;
        let entries = (self.entries)(config);
        if entries.len() >= self.most {
            return Err(broken(format!("there can be {} of them at most", self.most)));
        }
        entries.push(entry);
        Ok(())
    }

    fn settings(&self, config: &Config) -> Vec<Vec<FieldText>> {
        let mut config = config.clone();
        let of_entry = |entry: &T| {
            let texts = self.fields.iter().map(|field| (field, field.kind.text(entry)));
            let set = texts
                .filter(|(field, text)| field.required || *text != field.kind.text(&T::default()));
            let shown = set.map(|(field, text)| FieldText {
                name: field.name,
                text,
                quoted: field.kind.takes_string(),
                secret: field.kind.is_secret(),
            });
            shown.collect()
        };
        (self.entries)(&mut config).iter().map(of_entry).collect()
    }
}

impl<T> ListOf<T> {
    fn set(&self, entry: &mut T, given: &RowField) -> Result<(), ConfigError>
    where
        T: Default + Clone,
    {
        let place = given.place.clone();
        let Some(field) = self.fields.iter().find(|field| field.name == given.name) else {
            return Err(ConfigError::unknown_field(place, self, &given.name));
        };
        let text = given.value.for_kind(&field.kind);
        if text.is_some_and(|text| field.kind.set(entry, text).is_ok()) {
            return Ok(());
        }
        let value = if field.kind.is_secret() { "…".to_owned() } else { given.value.shown() };
        let expected = match text {
            Some(_) => field.kind.expected(),
            None => in_file(&field.kind),
        };
        let key = format!("{}.{}", self.name, field.name);
        Err(ConfigError::BadValue { place, key, value, expected })
    }

    fn broken(&self, place: Place, rule: String) -> ConfigError {
        ConfigError::BadEntry { place, list: self.name, rule }
    }
}
