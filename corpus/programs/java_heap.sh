# cause: bad_alloc
# needs: java
# exit: 1
# Java comes to the limit of its own heap.
cat > Leak.java << 'END'
public class Leak {
    public static void main(String[] arguments) {
        java.util.List<long[]> kept = new java.util.ArrayList<>();
        while (true)
            kept.add(new long[10_000]);
    }
}
END
exec java -Xmx32m -XX:+UseSerialGC Leak.java
