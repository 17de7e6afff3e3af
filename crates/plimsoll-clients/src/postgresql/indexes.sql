-- What is looked for, once the rows are there.
ALTER TABLE customers ADD PRIMARY KEY (customerid);
ALTER TABLE orders ADD PRIMARY KEY (orderid);
ALTER TABLE products ADD PRIMARY KEY (prod_id);
ALTER TABLE inventory ADD PRIMARY KEY (prod_id);
CREATE UNIQUE INDEX ix_cust_username ON customers (username);
CREATE INDEX ix_order_custid ON orders (customerid);
CREATE UNIQUE INDEX ix_orderlines_orderid ON orderlines (orderid, orderlineid);
CREATE INDEX ix_cust_hist_customerid ON cust_hist (customerid);
CREATE INDEX ix_prod_cat_special ON products (category, special);
CREATE INDEX ix_prod_actor ON products USING gin (to_tsvector('simple', actor));
CREATE INDEX ix_prod_title ON products USING gin (to_tsvector('simple', title));
SELECT setval('customers_customerid_seq', (SELECT max(customerid) FROM customers));
SELECT setval('orders_orderid_seq', (SELECT max(orderid) FROM orders));
SELECT setval('products_prod_id_seq', (SELECT max(prod_id) FROM products));
