-- Tables of an online store, with the names and columns of DVD Store. Numbers of rows are drawn from sequences; indexes come after the rows
-- (indexes.sql). Made in one transaction with its rows: whole or not at all.
CREATE TABLE customers (
    customerid SERIAL, firstname VARCHAR(50) NOT NULL, lastname VARCHAR(50) NOT NULL, address1 VARCHAR(50) NOT NULL, address2 VARCHAR(50),
    city VARCHAR(50) NOT NULL, state VARCHAR(50), zip VARCHAR(9), country VARCHAR(50) NOT NULL, region SMALLINT NOT NULL, email VARCHAR(50),
    phone VARCHAR(50), creditcardtype INTEGER NOT NULL, creditcard VARCHAR(50) NOT NULL, creditcardexpiration VARCHAR(50) NOT NULL,
    username VARCHAR(50) NOT NULL, password VARCHAR(50) NOT NULL, age SMALLINT, income INTEGER, gender VARCHAR(1)
);
CREATE TABLE orders (
    orderid SERIAL, orderdate DATE NOT NULL, customerid INTEGER, netamount NUMERIC(12, 2) NOT NULL, tax NUMERIC(12, 2) NOT NULL,
    totalamount NUMERIC(12, 2) NOT NULL
);
CREATE TABLE orderlines (
    orderlineid SMALLINT NOT NULL, orderid INTEGER NOT NULL, prod_id INTEGER NOT NULL, quantity SMALLINT NOT NULL, orderdate DATE NOT NULL
);
CREATE TABLE cust_hist (customerid INTEGER NOT NULL, orderid INTEGER NOT NULL, prod_id INTEGER NOT NULL);
CREATE TABLE products (
    prod_id SERIAL, category SMALLINT NOT NULL, title TEXT NOT NULL, actor TEXT NOT NULL, price NUMERIC(12, 2) NOT NULL, special SMALLINT,
    common_prod_id INTEGER NOT NULL
);
CREATE TABLE inventory (prod_id INTEGER NOT NULL, quan_in_stock INTEGER NOT NULL, sales INTEGER NOT NULL) WITH (fillfactor = 85);
CREATE TABLE plimsoll_marker (id INTEGER PRIMARY KEY, seed BIGINT NOT NULL, megabytes BIGINT NOT NULL, runs BIGINT NOT NULL);
