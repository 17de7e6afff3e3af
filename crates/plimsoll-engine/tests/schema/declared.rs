//! What may be declared, and what is refused by name where a row of the catalog could not say it.

use plimsoll_engine::error::EngineError;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, NewIndex, SchemaError, Table, TableBuilder};

use crate::world::*;

const KEY_COLUMNS_MAX: usize = 63;

fn refused_because<T: std::fmt::Debug>(result: Result<T, EngineError>, part: &str) {
    let is_refused =
        matches!(&result, Err(EngineError::BadChange { why, .. }) if why.contains(part));
    assert!(is_refused, "{result:?} and not {part}");
}

/// A table of as many columns as numbers of fixed ones, but for one that is its key.
fn wide(columns: &[String]) -> TableBuilder {
    let table = Table::builder("Wide").column(Column::new("id", ColumnType::Long));
    let table = columns
        .iter()
        .fold(table, |table, name| table.column(Column::new(name, ColumnType::UnsignedByte)));
    table.primary("primary", &["id"])
}

/// Why: the catalog lists the columns of a key in 255 bytes, and making the table ended the
/// process.
#[test]
fn a_key_of_more_columns_than_the_catalog_lists_is_refused() {
    with_database(|instance| async move {
        let names: Vec<String> = (0..=KEY_COLUMNS_MAX).map(|number| format!("c{number}")).collect();
        let too_many: Vec<&str> = names.iter().map(String::as_str).collect();
        let most = &too_many[..KEY_COLUMNS_MAX];
        let is_told = |result: Result<Table, SchemaError>| {
            assert!(
                matches!(result, Err(SchemaError::TooManyKeyColumns { columns: 64, .. })),
                "{result:?}"
            );
        };
        is_told(wide(&names).unique("all", &too_many).build());
        // The primary key is appended, and would be one too many.
        is_told(wide(&names).duplicates("all", most).build());
        let table = wide(&names).unique("most", most).build().unwrap();
        drop(instance.create_table(1, table).await.unwrap());
        let add = |index: NewIndex| instance.add_index(1, "Wide", index);
        refused_because(add(NewIndex::unique("all", &too_many)).await, "at most 63");
        refused_because(add(NewIndex::duplicates("all", most)).await, "at most 63");
        add(NewIndex::duplicates("fewer", &most[1..])).await.unwrap();
        let table = instance.open_table(1, "Wide").await.unwrap();
        let listed = table.placed().table.indexes.iter().map(|index| index.columns.len());
        assert_eq!(listed.collect::<Vec<_>>(), [1, KEY_COLUMNS_MAX, KEY_COLUMNS_MAX]);
    });
}

/// Values of a type of one length have that length, whatever limit is declared, and also once the
/// column is dropped and nothing else tells of it.
#[test]
fn the_columns_behind_a_dropped_one_stay_where_they_are_in_the_record() {
    for (limit, is_built) in [(0, true), (9, true), (0, false), (9, false)] {
        with_database(move |instance| async move {
            let mut table = Table::builder("Rows")
                .column(Column::new("id", ColumnType::Long))
                .column(Column { bytes_max: limit, ..Column::new("gone", ColumnType::Long) })
                .column(Column::new("kept", ColumnType::Long))
                .primary("primary", &["id"])
                .build()
                .unwrap();
            assert_eq!(table.columns[1].bytes_max, 4, "what is built");
            if !is_built {
                // As the catalog of a database may say that was made before.
                table.columns[1].bytes_max = limit;
            }
            let added = Column { bytes_max: limit, ..Column::new("added", ColumnType::Short) };
            let table = instance.create_table(1, table).await.unwrap();
            drop(table);
            instance.add_column(1, "Rows", added).await.unwrap();
            let table = instance.open_table(1, "Rows").await.unwrap();
            let (number, short) = (77i32.to_le_bytes(), 5i16.to_le_bytes());
            let given =
                [("id", &number[..]), ("gone", &number), ("kept", &number), ("added", &short)];
            let values = given.map(|(name, value)| (table.column(name).unwrap(), Some(value)));
            let transaction = instance.begin();
            let key = table.insert(&transaction, &values).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            drop(table);
            instance.drop_column(1, "Rows", "gone").await.unwrap();
            let table = instance.open_table(1, "Rows").await.unwrap();
            let transaction = instance.begin();
            let row = table.get(&transaction, &key).await.unwrap().unwrap();
            for (name, value) in [("kept", &number[..]), ("added", &short)] {
                let found = table.value(&transaction, &row, table.column(name).unwrap()).await;
                assert_eq!(found.unwrap().as_deref(), Some(value), "{name}, limit {limit}");
            }
            drop(table);
            instance.drop_column(1, "Rows", "added").await.unwrap();
        });
    }
}

/// Why: a column of type number 4 took no bytes of the record until the catalog was read again,
/// which says that it is a long.
#[test]
fn a_type_that_is_known_by_its_number_only_is_refused() {
    with_database(|instance| async move {
        for number in [0, 4, 13, 200] {
            let odd = || Column::new("odd", ColumnType::Other(number));
            let built = Table::builder("Rows")
                .column(Column::new("id", ColumnType::Long))
                .column(odd())
                .primary("primary", &["id"])
                .build();
            assert!(matches!(built, Err(SchemaError::UnknownType { .. })), "{built:?}");
            if number == 0 {
                drop(instance.create_table(1, notes("Notes")).await.unwrap());
            }
            refused_because(instance.add_column(1, "Notes", odd()).await, "only the number");
        }
    });
}

/// The catalog's index of names takes upper and lower case for the same: the error must name what
/// is in the way, and not a key of the catalog.
#[test]
fn names_that_differ_in_case_only_are_refused_by_name() {
    with_database(|instance| async move {
        drop(instance.create_table(1, notes("Notes")).await.unwrap());
        refused_because(instance.create_table(1, notes("NOTES")).await.map(drop), "Notes");
        refused_because(instance.create_table(1, notes("msysobjects")).await.map(drop), "MSys");
        let column = Column::new("Weight", ColumnType::Long);
        refused_because(instance.add_column(1, "Notes", column.clone()).await, "used twice");
        let index = |name| NewIndex::unique(name, &["weight"]);
        instance.add_index(1, "Notes", index("by weight")).await.unwrap();
        refused_because(instance.add_index(1, "Notes", index("By Weight")).await, "used twice");
        let built = Table::builder("Rows")
            .column(Column::new("weight", ColumnType::Long))
            .column(column)
            .primary("primary", &["weight"])
            .build();
        assert!(matches!(built, Err(SchemaError::Name { .. })), "{built:?}");
    });
}

/// A dropped column keeps its row of the catalog under another name, which a column may have.
#[test]
fn a_column_is_dropped_whatever_names_the_others_have() {
    with_database(|instance| async move {
        let table = instance.create_table(1, notes("Notes")).await.unwrap();
        let (object, id) = (table.placed().place.object, table.column("weight").unwrap());
        drop(table);
        let taken = Column::new(&format!("jetstub_{object}_{id}"), ColumnType::Long);
        instance.add_column(1, "Notes", taken.clone()).await.unwrap();
        instance.drop_column(1, "Notes", "weight").await.unwrap();
        let table = instance.open_table(1, "Notes").await.unwrap();
        assert!(table.column(&taken.name).is_ok());
        assert!(matches!(table.column("weight"), Err(EngineError::NoSuchObject { .. })));
        drop(table);
        instance.drop_column(1, "Notes", &taken.name).await.unwrap();
    });
}
